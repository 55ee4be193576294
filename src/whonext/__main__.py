"""``python -m whonext``: the command ``whonext`` where it is not on the path."""

import sys

from whonext.cli import main

sys.exit(main())

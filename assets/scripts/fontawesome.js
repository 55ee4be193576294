/* Replaces the icon script of the theme: the icons are in its web font already. */

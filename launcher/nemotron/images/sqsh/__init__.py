"""A .sqsh file from an image's layers, with no container engine and no root: layers -> one tree -> mksquashfs."""

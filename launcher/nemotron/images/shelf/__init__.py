"""A folder of .sqsh images that many users share: each image once, by its digest, whole or not there."""

#!/usr/bin/python3
"""Writes pages/: files of one and of three images, with Pillow.

    cd data/testdata && ./pages.py
"""
import os
import numpy as np
from PIL import Image

os.makedirs("pages", exist_ok=True)
images = [Image.fromarray(np.full((2, 3), 40 * i, np.uint8)) for i in range(1, 4)]
images[0].save("pages/a.tif", save_all=True, append_images=images[1:])
images[0].save("pages/b.tiff", save_all=True, append_images=images[1:], compression="tiff_lzw")
images[0].save("pages/c.gif", save_all=True, append_images=images[1:], duration=100, loop=0)
images[1].save("pages/d.gif")
images[1].save("pages/e.tif")

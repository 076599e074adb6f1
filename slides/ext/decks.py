"""The decks by their names, 0_orientation to the last one: in the order of their numbers."""


def names(folder, ending):
    """Of the files in the folder with this ending, without it."""
    return sorted((file.stem for file in folder.glob(f"*{ending}")), key=lambda name: int(name.split("_")[0]))

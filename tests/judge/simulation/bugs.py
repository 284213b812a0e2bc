def patches(bugs, world):
    return []

"""Online matrix completion: Algorithms 1 and 2, the bounds and the synthetic matrices of Herbster, Pasteris and Tse (2020)."""

__all__: list[str] = []

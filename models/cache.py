"""Keys and values of past positions, preallocated: what makes sampling linear in the length."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


class Cache:
    """Keys and values of ``rows`` rows at positions 0 to ``slots`` - 1, for every layer.

    A row's token at position p lives in slot p, so ragged rows need no shift: a row reads the slots up to its own
    position, and whatever padding left further right is overwritten before it can be read.
    """

    def __init__(self, key_LBKSE: Float[Tensor, "L B K S E"], value_LBKSE: Float[Tensor, "L B K S E"]) -> None:
        self.key_LBKSE = key_LBKSE
        self.value_LBKSE = value_LBKSE
        self._position_BT: Tensor | None = None
        self._row_B1: Tensor | None = None
        self._mask_B1TS: Tensor | None = None
        self._used = 0

    @property
    def slots(self) -> int:
        """Number of positions that the cache can hold."""
        return self.key_LBKSE.shape[3]

    def place(self, position_BT: Int[Tensor, "B T"] | None, *, time: int) -> None:
        """Say where the next ``time`` tokens of every row go, before the layers ``extend`` the cache with them."""
        self._position_BT = position_BT
        if position_BT is None:
            self._used, self._mask_B1TS = time, None
        else:
            self._used = int(position_BT.max()) + 1
            self._row_B1 = torch.arange(len(position_BT), device=position_BT.device)[:, None]
            slot_S = torch.arange(self._used, device=position_BT.device)
            self._mask_B1TS = (slot_S <= position_BT[:, :, None])[:, None]
        if self._used > self.slots:
            raise ValueError(f"position {self._used - 1} does not fit into a cache of {self.slots} slots")

    def extend(
        self, layer: int, k_BKTE: Float[Tensor, "B K T E"], v_BKTE: Float[Tensor, "B K T E"]
    ) -> tuple[Float[Tensor, "B K S E"], Float[Tensor, "B K S E"], Bool[Tensor, "B 1 T S"] | None]:
        """Store a layer's new keys and values; all that the rows may read, and which token may read which slot.

        No mask means that the new tokens are all there is, and read causally.
        """
        key_BKSE, value_BKSE = self.key_LBKSE[layer], self.value_LBKSE[layer]
        if self._position_BT is None:
            key_BKSE[:, :, : self._used] = k_BKTE
            value_BKSE[:, :, : self._used] = v_BKTE
            return k_BKTE, v_BKTE, None
        key_BKSE[self._row_B1, :, self._position_BT] = k_BKTE.transpose(1, 2).to(key_BKSE.dtype)
        value_BKSE[self._row_B1, :, self._position_BT] = v_BKTE.transpose(1, 2).to(value_BKSE.dtype)
        return key_BKSE[:, :, : self._used], value_BKSE[:, :, : self._used], self._mask_B1TS

    def select(self, row_N: Int[Tensor, " N"]) -> Cache:
        """A cache of the named rows only, in that order; a row may be named more than once."""
        return Cache(self.key_LBKSE.index_select(1, row_N), self.value_LBKSE.index_select(1, row_N))

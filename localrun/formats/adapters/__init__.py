"""Adapters (LoRA: Hu et al. 2021) as programs write them: a pair of small matrices for each weight they change."""

"""What rows of the tables of families have in common."""

from __future__ import annotations

from dataclasses import replace

from sheetgen.catalog.huggingface.family import Family, Moe

DEEPSEEK_MOE = Moe(n="n_routed_experts", layers="first_k", shared="n_shared_experts")
QWEN_MOE = Moe(layers="sparse_step")
QWEN_SHARED_MOE = replace(QWEN_MOE, shared_width="shared_expert_intermediate_size", shared_gate=True)
LOCAL_MOE = Moe(n="num_local_experts", width="intermediate_size")
QWEN_SPARSE = {"decoder_sparse_step": 1}

LLAMA = Family(qkv_bias="attention_bias", o_bias="attention_bias", mlp_bias="mlp_bias")
QWEN2 = Family(layers="qwen2", qkv_bias=True)
QWEN3 = Family(layers="qwen2", qkv_bias="attention_bias", o_bias="attention_bias", qk_norm="head")
GRANITE = replace(LLAMA, tied=True)
MLA = Family(attention="mla", o_bias="attention_bias", rope="mla")
DEEPSEEK = replace(MLA, moe=DEEPSEEK_MOE, mtp="each")
GLM = Family(qkv_bias="attention_bias", partial_rotary=0.5)

"""|S|-way accuracy on new images of the seen classes: how good are classifiers made from a few training images?

The same K support images give synthesised classifiers and prototypes; the many-shot classifier has seen them all.

Dimensions as in `repro.methods.base`; here W = S, and a task's classes are the seen ones in random order.
"""

import torch
from torch import Tensor

from repro.evaluation.bound import BoundTasks
from repro.evaluation.protocol import Progress, by_chunk, joined
from repro.methods.base import Method, take


def seen_accuracies(method: Method, bound: BoundTasks, progress: Progress) -> dict[str, Tensor]:
    """Per task in percent: `syn_s` of few-shot use, `proto_s` of the nearest prototype, `many_s` of the many-shot
    classifier (absent where the method has none). All classify into the task's classes."""
    scorer, embeddings_ND = method.scorer(bound.pool), bound.pool.embeddings_ND
    many_NS = method.many_shot_logits(embeddings_ND)

    def accuracies(chunk: range) -> dict[str, Tensor]:
        parts = []
        for batch, labels_TQ, real in bound.blocks(chunk):
            way_TQ = labels_TQ - bound.seen_classes
            prototypes_TWD = take(embeddings_ND, batch.support_TWK).mean(dim=2)
            predicted = {
                "syn_s": scorer.unseen_logits(batch).argmax(dim=-1),
                "proto_s": torch.cdist(take(embeddings_ND, batch.queries_TQ), prototypes_TWD).argmin(dim=-1),
            }
            if many_NS is not None:
                classes_TW = take(bound.pool.labels_N, batch.support_TWK[..., 0])
                own_TQW = take(many_NS, batch.queries_TQ).gather(2, classes_TW[:, None].expand(-1, way_TQ.shape[1], -1))
                predicted["many_s"] = own_TQW.argmax(dim=-1)
            right = {name: (predicted_TQ == way_TQ)[:real] for name, predicted_TQ in predicted.items()}
            parts.append({name: 100 * right_TQ.double().mean(dim=1) for name, right_TQ in right.items()})
        return joined(parts)

    return joined(list(by_chunk(accuracies, bound, progress)))

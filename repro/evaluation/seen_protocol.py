"""|S|-way accuracy on new images of the seen classes: how good are classifiers made from a few training images?

Every method answers with its own embedding: CASTLE with classifiers synthesised from K images, a trained ProtoNet with
their prototypes (paper, Appendix B), on the same tasks. The many-shot classifier has seen all training images.

Dimensions as in `repro.methods.base`; here W = S, and a task's classes are the seen ones in random order.
"""

from torch import Tensor

from repro.evaluation.bound import BoundTasks
from repro.evaluation.protocol import Progress, by_chunk, concatenated
from repro.methods.base import Method, take


def seen_accuracies(method: Method, bound: BoundTasks, progress: Progress) -> dict[str, Tensor]:
    """Per task in percent: the method's `seen_measure` of its few-shot use, `many_s` of its many-shot classifier
    (absent where it has none). Both classify into the task's classes."""
    scorer, many_NS = method.scorer(bound.pool), method.many_shot_logits(bound.pool.embeddings_ND)

    def accuracies(chunk: range) -> dict[str, Tensor]:
        parts = []
        for batch, labels_TQ, real in bound.blocks(chunk):
            way_TQ = labels_TQ - bound.seen_classes
            predicted = {method.seen_measure: scorer.unseen_logits(batch).argmax(dim=-1)}
            if many_NS is not None:
                classes_TW = take(bound.pool.labels_N, batch.support_TWK[..., 0])
                own_TQW = take(many_NS, batch.queries_TQ).gather(2, classes_TW[:, None].expand(-1, way_TQ.shape[1], -1))
                predicted["many_s"] = own_TQW.argmax(dim=-1)
            right = {name: (predicted_TQ == way_TQ)[:real] for name, predicted_TQ in predicted.items()}
            parts.append({name: 100 * right_TQ.double().mean(dim=1) for name, right_TQ in right.items()})
        return concatenated(parts)

    return concatenated(list(by_chunk(accuracies, bound, progress)))

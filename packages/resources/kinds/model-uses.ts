/** Uses of models beside text, each with a scope per route: `models.images:<route>`. */
export const MODEL_USES = ['images', 'audio', 'files', 'batches'] as const

/** The endpoints that the plane serves, as metrics and records name them. */
export const MODEL_METHODS = [
  'chat/completions',
  'completions',
  'responses',
  'embeddings',
  'messages',
  'messages/count_tokens',
  'models',
] as const
/** Why an endpoint of a route was not asked, as metrics name it. */
export const SKIP_REASONS = ['circuit', 'credential', 'model', 'price', 'rate', 'residency', 'dialect', 'rate'] as const
export type SkipReason = (typeof SKIP_REASONS)[number]

/** The endpoints of the plane, by their names in metrics and records. */
export const MODEL_METHODS = [
  'chat/completions',
  'completions',
  'responses',
  'embeddings',
  'images/generations',
  'images/edits',
  'audio/speech',
  'audio/transcriptions',
  'audio/translations',
  'messages',
  'messages/count_tokens',
  'generateContent',
  'countTokens',
  'embedContent',
  'batchEmbedContents',
  'models',
  'files',
  'files/list',
  'files/get',
  'files/content',
  'files/delete',
  'batches',
  'batches/list',
  'batches/get',
  'batches/cancel',
  'messages/batches',
  'messages/batches/list',
  'messages/batches/get',
  'messages/batches/cancel',
  'messages/batches/delete',
  'messages/batches/results',
] as const
/** Why an endpoint of a route was skipped, by its name in metrics. */
export const SKIP_REASONS = [
  'circuit',
  'credential',
  'model',
  'price',
  'rate',
  'residency',
  'dialect',
  'account',
] as const
export type SkipReason = (typeof SKIP_REASONS)[number]

/** Results of retries: sent, not sent for lack of budget, or because the wait was too long. */
export const RETRY_RESULTS = ['sent', 'budget', 'wait'] as const
export type RetryResult = (typeof RETRY_RESULTS)[number]

/** Results of look-ups: a response was stored, none was, or the request or its caller excludes stored responses. */
export const CACHE_RESULTS = ['hit', 'miss', 'bypass'] as const
export type CacheResult = (typeof CACHE_RESULTS)[number]

/** The endpoints that the plane serves, as metrics and records name them. */
export const MODEL_METHODS = ['chat/completions', 'models'] as const

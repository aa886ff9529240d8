/** Returns the message of a caught value. Of aggregated errors, such as for the addresses of one host, the first one is used. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return reasonOf(error.errors[0])
  return error instanceof Error ? error.message : String(error)
}

/** What a caught value says went wrong. Of several attempts that failed together, such as to the addresses of one host, the first tells. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return reasonOf(error.errors[0])
  return error instanceof Error ? error.message : String(error)
}

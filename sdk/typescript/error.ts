/**
 * Everything that this package throws by itself.
 *
 * @example
 * if (error instanceof PlatError) console.error(error.message)
 */
export class PlatError extends Error {
  override readonly name: string = 'PlatError'
}

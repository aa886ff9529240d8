/** Everything that this package throws by itself. */
export class PlatError extends Error {
  override readonly name: string = 'PlatError'
}

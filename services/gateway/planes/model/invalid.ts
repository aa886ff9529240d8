/**
 * The provider sent a response that is not valid in its dialect, or reported that it failed. The message completes the sentence "the upstream sent …".
 * It never quotes the response, which may quote the caller.
 */
export class InvalidResponseError extends Error {
  constructor(what: string) {
    super(what)
    this.name = 'InvalidResponseError'
  }
}

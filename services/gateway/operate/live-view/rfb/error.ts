/** One side sent what is not RFB, or what this gateway does not relay. The message never quotes what was sent. */
export class RfbError extends Error {
  readonly side: 'viewer' | 'sandbox'

  constructor(side: 'viewer' | 'sandbox', message: string) {
    super(message)
    this.side = side
  }
}

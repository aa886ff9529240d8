/** A refusal: a status and the error object in the response. Thrown by a step of an endpoint. */
export class RefusalError extends Error {
  readonly status: number
  /** Additional response headers. */
  readonly headers: Readonly<Record<string, string>>

  /** `error` is the whole error text of a broker-token endpoint: `{error: <text>}` (docs/spec/broker-api.md, "Errors"). */
  constructor(status: number, error: string, headers: Readonly<Record<string, string>> = {}) {
    super(error)
    this.status = status
    this.headers = headers
  }

  /** Returns the response body; `requestId` identifies the request. */
  body(_requestId: string): object {
    return { error: this.message }
  }
}

/** A refusal in the shape of RFC 6749, section 5.2: `{error, error_description}`. The description is one line. */
export class OAuthError extends RefusalError {
  readonly code: string

  constructor(status: number, code: string, description: string, headers: Readonly<Record<string, string>> = {}) {
    super(status, description, headers)
    this.code = code
  }

  override body(_requestId: string): object {
    return { error: this.code, error_description: this.message }
  }
}

/** A refusal in the shape of all APIs except the broker's and OAuth's: `{error: <code>, message, requestId}`. */
export class CodedRefusalError extends RefusalError {
  readonly code: string

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(status, message, headers)
    this.code = code
  }

  override body(requestId: string): object {
    return { error: this.code, message: this.message, requestId }
  }
}

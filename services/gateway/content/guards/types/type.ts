import type { GuardConfig, GuardTarget } from '../config.ts'

export interface ClassifierRequest {
  readonly url: URL
  readonly body: string
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
}

/** Input of a classification. */
export interface ClassifierInput {
  readonly config: GuardConfig
  readonly url: URL
  /** At most `maxBytes` of UTF-8. */
  readonly text: string
  readonly target: GuardTarget
  /** Content of `apiKeyFile`, or null. */
  readonly key: string | null
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** A classifier protocol: request format and response parser. */
export interface GuardType {
  request(input: ClassifierInput): ClassifierRequest
  /** Returns a score from 0, harmless, to 1, or null if the response has none. */
  score(response: unknown, config: GuardConfig): number | null
}

/** Builds the common request: JSON, with the key as bearer token. */
export function posted({ url, key }: ClassifierInput, body: object): ClassifierRequest {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json',
    ...(key !== null && { authorization: `Bearer ${key}` }),
  }
  return { url, headers, body: JSON.stringify(body) }
}

/** Returns `model` if configured. */
export function modelOf({ model }: GuardConfig): { readonly model?: string } {
  return model === '' ? {} : { model }
}

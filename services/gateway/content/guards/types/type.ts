import type { GuardConfig, GuardTarget } from '../config.ts'

/** One request to a classifier. */
export interface ClassifierRequest {
  readonly url: URL
  readonly body: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
}

/** What a request is made of. */
export interface Question {
  readonly config: GuardConfig
  readonly url: URL
  /** At most `maxBytes` of UTF-8. */
  readonly text: string
  readonly target: GuardTarget
  /** Content of `apiKeyFile`; null when there is none. */
  readonly key: string | null
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** A protocol of classifiers: how it is asked, and how its answer is read. */
export interface GuardType {
  ask(question: Question): ClassifierRequest
  /** From 0, harmless, to 1. Null: the answer has no such score, and counts as none. */
  score(answer: unknown, config: GuardConfig): number | null
}

/** What nearly all of them take: JSON, with the key as a bearer token. */
export function posted({ url, key }: Question, body: object): ClassifierRequest {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json',
    ...(key !== null && { authorization: `Bearer ${key}` }),
  }
  return { url, headers, body: JSON.stringify(body) }
}

/** `model`, where the configuration names one. */
export function modelOf({ model }: GuardConfig): { readonly model?: string } {
  return model === '' ? {} : { model }
}

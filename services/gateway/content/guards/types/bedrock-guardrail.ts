import { parseStrict } from '@plat/core'
import { type AwsCredentials, signAws } from '@plat/http'
import { at, elements } from './json.ts'
import { type GuardType, posted } from './type.ts'

/** What Amazon Bedrock's words for its confidence stand for. */
const CONFIDENCE: Readonly<Record<string, number>> = { NONE: 0, LOW: 0.33, MEDIUM: 0.66, HIGH: 1 }

/** `bedrock-runtime.eu-central-1.amazonaws.com` */
const REGION_IN_HOST = /^bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\./
/** `POST /guardrail/<id or ARN>/version/<version>/apply`. */
const APPLY_PATH = /\/guardrail\/[^/]+\/version\/[^/]+\/apply$/

/** The region that a host names; empty: it names none. */
export function regionIn(url: URL): string {
  return REGION_IN_HOST.exec(url.hostname)?.[1] ?? ''
}

/** Whether a URL is that of ApplyGuardrail. */
export function appliesGuardrail(url: URL): boolean {
  return APPLY_PATH.test(url.pathname)
}

/**
 * A guardrail of Amazon Bedrock (ApplyGuardrail). Whatever it intervenes for counts, or with a `category` the content filter of that name,
 * such as `PROMPT_ATTACK`, by its confidence. Its key file holds a Bedrock API key, or the JSON of credentials as `credential_process` writes it;
 * without one the credentials of the environment sign.
 */
export function bedrockGuardrail(ofEnvironment: AwsCredentials | null): GuardType {
  return {
    ask(question) {
      const { key, config, url, now } = question
      const credentials = key === null ? ofEnvironment : credentialsIn(key)
      // Attacks on prompts are looked for in inputs alone, and for a model the answer of a tool is one.
      const content = { source: 'INPUT', content: [{ text: { text: question.text } }] }
      const request = posted({ ...question, key: credentials === null ? key : null }, content)
      if (credentials === null) return request
      const signed = { method: 'POST', url, body: request.body, headers: request.headers, at: now }
      return {
        ...request,
        headers: signAws({ ...signed, region: config.region || regionIn(url), service: 'bedrock' }, credentials),
      }
    },
    score(answer, { category }) {
      const action = at(answer, 'action')
      if (typeof action !== 'string') return null
      const filters = elements(at(answer, 'assessments')).flatMap((one) =>
        elements(at(one, 'contentPolicy', 'filters')),
      )
      if (category === '') return action === 'GUARDRAIL_INTERVENED' ? 1 : 0
      const scores = filters
        .filter((one) => at(one, 'type') === category)
        .map((one) => CONFIDENCE[String(at(one, 'confidence'))] ?? 1)
      return Math.max(0, ...scores)
    },
  }
}

/** Null: the text is no JSON of credentials, and so an API key. Throws without a word of it: JSON.parse would quote the secret. */
function credentialsIn(text: string): AwsCredentials | null {
  if (!text.startsWith('{')) return null
  const value: unknown = parseStrict(text)
  const accessKeyId = at(value, 'AccessKeyId')
  const secretAccessKey = at(value, 'SecretAccessKey')
  const sessionToken = at(value, 'SessionToken')
  if (typeof accessKeyId !== 'string' || typeof secretAccessKey !== 'string') {
    throw new Error('the key file holds JSON without AccessKeyId and SecretAccessKey')
  }
  return { accessKeyId, secretAccessKey, sessionToken: typeof sessionToken === 'string' ? sessionToken : null }
}

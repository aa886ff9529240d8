import { parseStrict } from '@plat/core'
import { type AwsCredentials, signAws } from '@plat/http'
import { regionIn } from './bedrock-url.ts'
import { at, elements } from './json.ts'
import { type GuardType, posted } from './type.ts'

/** Scores of Amazon Bedrock's confidence levels. */
const CONFIDENCE: ReadonlyMap<unknown, number> = new Map(Object.entries({ NONE: 0, LOW: 0.33, MEDIUM: 0.66, HIGH: 1 }))

/**
 * A guardrail of Amazon Bedrock (ApplyGuardrail). Any intervention counts, or with a `category` the content filter of that name,
 * such as `PROMPT_ATTACK`, by its confidence. The key file holds a Bedrock API key, or JSON credentials in the format of `credential_process`;
 * without one the credentials of the environment sign.
 */
export function bedrockGuardrail(ofEnvironment: AwsCredentials | null): GuardType {
  return {
    request(input) {
      const { key, config, url, now } = input
      const credentials = key === null ? ofEnvironment : credentialsIn(key)
      // Prompt attacks are detected in inputs only, and for a model the result of a tool is one.
      const content = { source: 'INPUT', content: [{ text: { text: input.text } }] }
      const request = posted({ ...input, key: credentials === null ? key : null }, content)
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
        .map((one) => CONFIDENCE.get(at(one, 'confidence')) ?? 1)
      return Math.max(0, ...scores)
    },
  }
}

/** Returns null if the text is not JSON, but an API key. Throws errors without its content: JSON.parse would quote the secret. */
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

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testGuard } from '../testing/config.ts'
import { bedrockGuardrail } from './bedrock-guardrail.ts'

test('errors about a key file contain nothing of it', () => {
  const url = new URL('https://bedrock-runtime.eu-central-1.amazonaws.com/guardrail/a/version/1/apply')
  const input = { config: testGuard, url, text: 'x', target: 'toolResult', now: 0 } as const
  const secret = 'wJalrXUtnFEMI'
  for (const key of [`{"AccessKeyId":"A","SecretAccessKey":${secret}}`, `{"AccessKeyId":"A","Secret":"${secret}"}`]) {
    const ask = () => bedrockGuardrail(null).request({ ...input, key })
    assert.throws(ask, (error) => error instanceof Error && !error.message.includes(secret.slice(0, 5)))
  }
})

test('a confidence without a known score counts as a certain hit, also one that is a name of every object', () => {
  const answer = (confidence: unknown) => ({
    action: 'NONE',
    assessments: [{ contentPolicy: { filters: [{ type: 'PROMPT_ATTACK', confidence }] } }],
  })
  const score = (confidence: unknown) =>
    bedrockGuardrail(null).score(answer(confidence), { ...testGuard, category: 'PROMPT_ATTACK' })
  assert.equal(score('MEDIUM'), 0.66)
  for (const unknown of ['constructor', '__proto__', 'EXTREME', undefined, ['NONE']]) assert.equal(score(unknown), 1)
})

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

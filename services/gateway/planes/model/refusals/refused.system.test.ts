import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { pythonWith } from '@plat/testkit/processes/python'
import { refusingGateway } from '../../../testing/refusing.ts'

const run = promisify(execFile)
const here = (name: string) => path.join(import.meta.dirname, name)

const python = await pythonWith(here('requirements.txt'))
const skip = 'missing' in python ? python.missing : false

test('the Python clients raise the errors of their statuses with the text of the refusal, and repeat none', {
  skip,
}, async (t) => {
  assert.ok('path' in python)
  const gateway = await refusingGateway(t)
  gateway.openai.answers(({ body }) =>
    body.includes('"stream":true') ? { text: ['Hello', ' world'], diesAfter: 400 } : { text: ['Hello'] },
  )
  gateway.anthropic.answers({ text: ['Hello', ' world'], diesAfter: 3 })
  const { stdout } = await run(python.path, [here('refused.py'), gateway.url, gateway.token])
  const errors: Readonly<Record<string, Readonly<Record<string, unknown>>>> = JSON.parse(stdout)
  const cases: readonly (readonly [string, string, RegExp])[] = [
    [
      'denied',
      'PermissionDeniedError',
      /The call of large-1 was refused: large models are for research\. Do not repeat/,
    ],
    ['deniedMessage', 'PermissionDeniedError', /The call of large-1 was refused: large models are for research\./],
    [
      'rate',
      'RateLimitError',
      /refused: the limit of 1 calls in 86400 s of each session \(rule slow .*\) is used up until 2/,
    ],
    ['budget', 'RateLimitError', /left of the session's budget\. A larger budget would help\./],
    ['missing', 'PermissionDeniedError', /argument "max_tokens" is missing/],
    ['stream', 'APIError', /The call of small-1 failed: .*You may repeat the call once\. Decision [0-9a-f-]{36}/],
    ['streamMessage', 'APIStatusError', /The call of claude-test failed: .*Decision [0-9a-f-]{36}/],
  ]
  for (const [name, type, text] of cases) {
    const error = errors[name] ?? {}
    assert.equal(error.type, type, JSON.stringify(error))
    assert.match(String(error.message), text, name)
    assert.equal(error.sent, 1, name)
    if (!name.startsWith('stream')) assert.match(String(error.id), /^[0-9a-f-]{36}$/, name)
  }
  assert.equal(errors.denied?.code, 'policy_denied')
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { startLegacyAgent } from '@plat/testkit/a2a-agent-03'
import { rpc, setUpA2a } from '../testing/fixture.ts'

const CARD = '4111 1111 1111 1111'

test('messages and streams of callers of 0.3 are redacted, also text in pieces', async (t) => {
  const agent = await startTestAgent()
  const legacy = await startLegacyAgent()
  t.after(() => Promise.all([agent.close(), legacy.close()]))
  const exposed = { 'default/helper': {}, 'default/old': { endpoint: legacy.url, protocolVersion: '0.3' } }
  const config = {
    dlpProfiles: {
      back: { requestAction: 'audit', responseAction: 'redact', detectors: ['credit_card'] },
    },
    dlp: { servers: { 'a2a/default/helper': 'back', 'a2a/default/old': 'back' } },
  }
  const { post, token } = await setUpA2a(t, agent, { exposed, config })
  for (const name of Object.keys(exposed)) {
    const parts = [{ kind: 'text', text: 'work card 4111 1111 |1111 1111 end 4111' }]
    const message = { kind: 'message', messageId: 'm', role: 'user', parts }
    const { text } = await post(rpc('message/stream', { message }), {
      agent: name,
      token: token({ scope: 'agents:old agents:helper' }),
      headers: { 'a2a-version': '0.3' },
    })
    const results = text
      .split('\n')
      .filter((line) => line.startsWith('data:'))
      .map((line) => JSON.parse(line.slice(5)).result)
    assert.ok(
      results.every((result) => typeof result.kind === 'string'),
      text,
    )
    const pieces = results.filter(({ kind }) => kind === 'artifact-update').flatMap(({ artifact }) => artifact.parts)
    const whole = pieces.map((part) => part.text).join('')
    assert.ok(
      pieces.every(({ kind }) => kind === 'text'),
      text,
    )
    assert.ok(whole.startsWith('card ') && whole.endsWith(' end 4111'), `${name}: ${whole}`)
    assert.equal(whole.includes(CARD), false, whole)
  }
})

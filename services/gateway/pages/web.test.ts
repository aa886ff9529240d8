import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { parseResource } from '@plat/resources'
import { Gates } from '../builtin/web/domain-filter.ts'
import { LEAST } from '../builtin/web/testing/fixture.ts'
import { Snapshots } from '../call/index.ts'
import { testIdentity } from '../call/testing/identity.ts'
import { checkGatewayConfig, typedConfig } from '../config.ts'
import { examples } from '../testing/configured.ts'

test('the configuration and resources of docs/web.md are valid, and let agents read what the page says', () => {
  const [json = ''] = examples('web.md', 'json')
  const { config, problems } = checkGatewayConfig(JSON.stringify({ ...LEAST, ...JSON.parse(json) }), {
    exists: () => true,
  })
  assert.deepEqual(problems.map(formatProblem), [])
  const [agentText = '', policyText = ''] = examples('web.md', 'yaml')
  const agent = parseResource('Agent', agentText)
  assert.deepEqual([agent.problems, parseResource('ToolPolicy', policyText).problems], [[], []])
  const own = agent.object?.spec.web ?? assert.fail()
  const { snapshot } = { snapshot: new Snapshots().current }
  const gates = new Gates(typedConfig(config).web, (_, { namespace }) => (namespace === 'support' ? own : null))
  const reads = (namespace: string, host: string) =>
    gates.of({ identity: { ...testIdentity, namespace }, snapshot }).fault(new URL(`https://${host}/`)) === null
  assert.deepEqual(
    ['www.example.com', 'careers.example.com', 'docs.vendor.example', 'intranet.example.com'].map((host) =>
      reads('support', host),
    ),
    [true, false, false, false],
  )
  assert.deepEqual([reads('research', 'anything.example'), reads('research', 'x.intranet.example.com')], [true, false])
  assert.equal(gates.of({ identity: testIdentity, snapshot }).isShut, true)
})

test('the limits of docs/web.md are those of the table', () => {
  const { problems } = checkGatewayConfig(JSON.stringify({ ...LEAST, web: { enabled: true } }), { exists: () => true })
  assert.deepEqual(problems, [])
  const { config } = checkGatewayConfig(JSON.stringify(LEAST), { exists: () => true })
  const { maxBytes, timeoutSeconds, maxRedirects, search } = typedConfig(config).web
  assert.deepEqual([maxBytes, timeoutSeconds, maxRedirects, search.maxResults], [2 * 1024 * 1024, 15, 5, 10])
  const refused = { maxBytes: 32 * 1024 * 1024 + 1, maxRedirects: 21, search: { maxResults: 51 } }
  const over = checkGatewayConfig(JSON.stringify({ ...LEAST, web: refused }), { exists: () => true })
  assert.deepEqual(
    over.problems.map(({ path: at }) => at),
    ['web.maxBytes', 'web.maxRedirects', 'web.search.maxResults'],
  )
})

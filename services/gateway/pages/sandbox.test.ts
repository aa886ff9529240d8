import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { parseResource } from '@plat/resources'
import { createBrowserGate } from '../builtin/web/index.ts'
import { LEAST } from '../builtin/web/testing/fixture.ts'
import { Snapshots } from '../call/index.ts'
import { testIdentity } from '../call/testing/identity.ts'
import { checkGatewayConfig, typedConfig } from '../config.ts'
import { examples } from '../testing/configured.ts'

function checked(own: object) {
  const { config, problems } = checkGatewayConfig(JSON.stringify({ ...LEAST, ...own }), { exists: () => true })
  return { config: typedConfig(config), problems: problems.map(formatProblem) }
}

test('the configuration and resources of docs/egress.md are valid, and let browsers out as the page says', () => {
  // Shows D2.agent.browser.allowedDomains and D2.agent.profile.browser.
  const [json = ''] = examples('egress.md', 'json')
  const { config, problems } = checked(JSON.parse(json))
  assert.deepEqual(problems, [])
  const [agentText = '', policyText = ''] = examples('egress.md', 'yaml')
  const agent = parseResource('Agent', agentText)
  assert.deepEqual([agent.problems, parseResource('ToolPolicy', policyText).problems], [[], []])
  const { browser, web } = agent.object?.spec ?? assert.fail()
  const domains = { allowedDomains: browser?.allowedDomains ?? [], deniedDomains: web?.deniedDomains ?? [] }
  const gate = createBrowserGate(config.web, (_, { namespace }) => (namespace === 'support' ? domains : null))
  const { current: snapshot } = new Snapshots()
  const fault = (authority: string, namespace = 'support') =>
    gate({ identity: { ...testIdentity, namespace }, snapshot }, new URL(`https://${authority}/`))
  assert.equal(fault('www.example.com'), null)
  assert.equal(fault('careers.example.com'), 'Agent.spec.web.deniedDomains names its domain')
  assert.equal(fault('shop.example.com'), 'Agent.spec.browser.allowedDomains does not name its domain')
  assert.equal(fault('example.net'), 'web.namespaces.support.allowedDomains does not name its domain')
  assert.equal(fault('a.intranet.example.com'), 'web.deniedDomains names its domain')
  assert.equal(fault('www.example.com:80'), 'web.allowedPorts does not name its port')
  assert.equal(fault('www.example.com', 'research'), 'no list of allowed domains names its domain')
})

test('the configuration and the policy of docs/exec.md are valid, and its defaults are those of the table', () => {
  // Shows D3.limit.exec.
  const [json = ''] = examples('exec.md', 'json')
  assert.deepEqual(checked(JSON.parse(json)).problems, [])
  const [policyText = ''] = examples('exec.md', 'yaml')
  assert.deepEqual(parseResource('ToolPolicy', policyText).problems, [])
  const { exec } = checked({}).config
  assert.deepEqual(exec, {
    enabled: false,
    endpointTemplate: 'http://{session}.{namespace}.svc.cluster.local:8888',
    maxTimeoutSeconds: 300,
    maxOutputBytes: 10 * 1024 * 1024,
    keyFile: '',
    taintLabels: ['untrusted-input'],
  })
})

test('a template of sandboxes leads to each session apart, and nowhere else', () => {
  const problemsOf = (endpointTemplate: string) =>
    checked({ exec: { enabled: true, endpointTemplate } }).problems.join()
  assert.equal(problemsOf('https://{session}-exec.{namespace}.sandboxes.example/run'), '')
  for (const template of [
    'http://all.example:8888',
    'http://{session}.{agent}.example',
    'ftp://{session}.example',
    'http://user:secret@{session}.example',
    'http://{session}.example/?a=b',
  ]) {
    const problem = problemsOf(template)
    assert.match(problem, /^exec\.endpointTemplate: /, template)
    assert.doesNotMatch(problem, /secret/)
  }
})

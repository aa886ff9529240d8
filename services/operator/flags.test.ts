import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseFlags } from '@plat/config'
import { endpointsOf, flagProblems, operatorFlags, stdioSettingsOf } from './flags.ts'

function parsed(...args: readonly string[]) {
  const flags = parseFlags(operatorFlags, args, 'plat-operator')
  assert.ok(flags.ok, 'message' in flags ? flags.message : '')
  return flags.values
}

test('the defaults have no problems', () => {
  assert.deepEqual(flagProblems(parsed()), [])
  assert.deepEqual(endpointsOf(parsed()), {})
})

test('-endpoint-jurisdictions names origins with their jurisdictions, and a wrong entry is named', () => {
  const good = parsed('-endpoint-jurisdictions', 'https://login.example=DE,https://idp.example:8443=EU')
  assert.deepEqual(flagProblems(good), [])
  assert.deepEqual(endpointsOf(good), { 'https://login.example': 'DE', 'https://idp.example:8443': 'EU' })
  const bad = parsed(
    '-endpoint-jurisdictions',
    'https://login.example,https://a.example/token=DE,https://sts.us-east-1.amazonaws.com=DE',
  )
  const [missing, path, contradicts, ...more] = flagProblems(bad)
  assert.match(
    String(missing),
    /^-endpoint-jurisdictions https:\/\/login\.example: must be written as https:\/\/login\.example=DE$/,
  )
  assert.match(String(path), /https:\/\/a\.example\/token=DE: is not an origin: write https:\/\/a\.example$/)
  assert.match(String(contradicts), /sts\.us-east-1\.amazonaws\.com=DE: /)
  assert.deepEqual(more, [])
})

test('a flag with a value that cannot be right is named, with what it must be', () => {
  const problems = flagProblems(parsed('-workspace-size', 'much', '-attestation-ca-file', '/ca.pem'))
  assert.ok(problems.includes('-workspace-size much: must be a quantity such as 1Gi'), problems.join('\n'))
  assert.ok(problems.includes('-attestation-ca-file: needs -attestation-url'), problems.join('\n'))
  const alone = flagProblems(parsed('-attestation-url', 'https://attest.example'))
  assert.deepEqual(alone, ['-attestation-url: needs -identity-url, without which there are no sandboxes'])
  const refused = parseFlags(operatorFlags, ['-node-count-interval', '1ms'], 'plat-operator')
  assert.match(refused.ok ? '' : refused.message, /node-count-interval/)
  const help = parseFlags(operatorFlags, ['-help'], 'plat-operator')
  for (const name of Object.keys(operatorFlags)) assert.ok(!help.ok && help.usage.includes(`-${name}`), name)
})

test('-stdio-image needs labels of the gateway, and labels are written as Kubernetes has them', () => {
  assert.equal(stdioSettingsOf(parsed()), null)
  const labels = 'app.kubernetes.io/name=plat,tier=,a=b'
  const good = parsed('-stdio-image', 'plat:1', '-gateway-labels', labels)
  assert.deepEqual(flagProblems(good), [])
  const gatewayLabels = { 'app.kubernetes.io/name': 'plat', tier: '', a: 'b' }
  assert.deepEqual(stdioSettingsOf(good), { bridgeImage: 'plat:1', gatewayLabels })
  assert.deepEqual(flagProblems(parsed('-stdio-image', 'plat:1')), [
    '-stdio-image: needs -gateway-labels, without which every pod could call the servers',
  ])
  for (const wrong of ['app', '=x', 'a=b c', 'a/b/c=d', `a=${'x'.repeat(64)}`])
    assert.deepEqual(flagProblems(parsed('-stdio-image', 'plat:1', '-gateway-labels', wrong)), [
      `-gateway-labels ${wrong}: must be written as name=value`,
    ])
})

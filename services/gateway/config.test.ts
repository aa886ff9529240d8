import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, describe, test } from 'node:test'
import { formatProblem } from '@plat/config'
import { checkGatewayConfig, DEFAULT_CONFIG_PATH, gatewaySchema, loadGatewayConfig } from './config.ts'

const CASES = path.join(import.meta.dirname, 'fixtures', 'config')
const SEPARATOR = '\n----\n'

/** Returns the problems of a file. Only paths below /there exist. */
function verdict(text: string): string {
  const { problems } = checkGatewayConfig(text, { exists: (file) => file.startsWith('/there/') })
  const lines = problems.map((problem) => `${formatProblem(problem)}\n`)
  if (!problems.some((problem) => problem.severity === 'error')) lines.push('config OK\n')
  return lines.join('')
}

describe('gateway.json, case by case', () => {
  for (const name of readdirSync(CASES)) {
    test(name.replace('.txt', '').replaceAll('-', ' '), () => {
      // Shows D3.rule.policyFile, D3.rule.auditPath, D3.rule.identityKeys, D3.rule.upstreamsOrModels,
      // D3.rule.adminListenDiffers, D3.rule.auditFailurePolicy, D3.rule.tokenExchangeURL, D3.rule.upstreamNames,
      // D3.rule.upstreamURLs, D3.rule.sessionBudgetUSD, D3.rule.shutdownSeconds, D3.error.coreRule.
      const [text = '', expected] = readFileSync(path.join(CASES, name), 'utf8').split(SEPARATOR)
      assert.equal(verdict(text), expected)
    })
  }
})

describe('loading', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
  after(() => rmSync(folder, { recursive: true }))

  function write(name: string, content: object): string {
    const file = path.join(folder, name)
    writeFileSync(file, JSON.stringify(content))
    return file
  }

  const pub = write('pub.pem', {})
  const least = {
    policyFile: path.join(folder, 'policies.json'),
    auditPath: path.join(folder, 'audit.jsonl'),
    upstreams: { notes: 'http://127.0.0.1:8091/mcp' },
    identity: { publicKeyFiles: [pub] },
  }
  const good = write('gateway.json', least)
  const none = { config: '', listen: '' }

  test('the flag names the file, else the environment, else the fixed path', () => {
    // Shows D3.load.path.default.
    const env = { PLAT_GATEWAY_CONFIG: good }
    assert.ok(loadGatewayConfig({ env, flags: none }).ok)
    assert.ok(loadGatewayConfig({ env: { PLAT_GATEWAY_CONFIG: '/missing' }, flags: { ...none, config: good } }).ok)
    assert.equal(loadGatewayConfig({ env: {}, flags: none }).path, DEFAULT_CONFIG_PATH)
  })

  test('a file that cannot be read is one problem that says how to name another', () => {
    const loaded = loadGatewayConfig({ env: {}, flags: { ...none, config: path.join(folder, 'none.json') } })
    assert.ok(!loaded.ok)
    assert.match(
      loaded.problems.map(formatProblem).join('\n'),
      /^cannot read .*none.json: no such file; name one with -config/,
    )
  })

  test('bytes that are not UTF-8 are refused', () => {
    const file = path.join(folder, 'latin1.json')
    writeFileSync(file, Buffer.from('{"listen":"\xe9"}', 'latin1'))
    const loaded = loadGatewayConfig({ env: {}, flags: { ...none, config: file } })
    assert.ok(!loaded.ok && loaded.problems.length === 1)
  })

  test('the result has every default of the contract', () => {
    const loaded = loadGatewayConfig({ env: {}, flags: { ...none, config: good } })
    assert.ok(loaded.ok)
    const { config } = loaded
    assert.equal(config.listen, ':8080')
    assert.equal(config.maxBodyBytes, 4_194_304)
    assert.equal(config.policyReloadSeconds, 2)
    assert.equal(config.auditFailurePolicy, 'open')
    assert.equal(config.identity.audience, 'plat-gateway')
    assert.equal(config.identity.leewaySeconds, 30)
    assert.equal(config.identity.jwksRefreshSeconds, 300)
    assert.deepEqual(config.upstreams, least.upstreams)
    assert.ok(Object.isFrozen(config))
    assert.deepEqual(
      loaded.warnings.map((warning) => warning.path),
      ['policyFile'],
    )
  })

  test('-listen replaces the address after validation, and must be an address itself', () => {
    // Shows D3.load.listenOverrides, D3.flag.listen.
    const loaded = loadGatewayConfig({ env: {}, flags: { config: good, listen: '127.0.0.1:0' } })
    assert.ok(loaded.ok && loaded.config.listen === '127.0.0.1:0')
    const wrong = loadGatewayConfig({ env: {}, flags: { config: good, listen: '8080' } })
    assert.ok(!wrong.ok)
    assert.match(wrong.problems.map(formatProblem).join('\n'), /^flag -listen: must be an address/)
  })

  test('a misspelt key, three wrong values and a key file that does not exist give five lines', () => {
    const file = write('five.json', {
      ...least,
      shutdownTimeoutSecond: 5,
      maxBodyBytes: 'x',
      auditFailurePolicy: 'maybe',
      logLevel: 5,
      identity: { publicKeyFiles: [path.join(folder, 'none.pem')] },
    })
    const loaded = loadGatewayConfig({ env: {}, flags: { ...none, config: file } })
    assert.ok(!loaded.ok)
    assert.equal(loaded.problems.length, 5, loaded.problems.map(formatProblem).join('\n'))
  })
})

test('no two tables describe the same key', () => {
  assert.equal(gatewaySchema().type, 'object')
})

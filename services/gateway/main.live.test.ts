import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { inherited } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'

const BIN = fileURLToPath(new URL('./bin/plat-gateway.mjs', import.meta.url))
const folder = tempFolder()

const there = path.join(folder, 'there')
writeFileSync(there, '')

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs the binary to its end. */
function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const child = { env: { ...inherited(), ...env } }
  return new Promise((resolve) =>
    execFile(process.execPath, [BIN, ...args], child, (error, out, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, out, err }),
    ),
  )
}

function configFile(name: string, content: object): string {
  const file = path.join(folder, name)
  writeFileSync(file, JSON.stringify(content))
  return file
}

const least = {
  policyFile: there,
  auditPath: path.join(folder, 'audit.jsonl'),
  upstreamsFile: there,
  identity: { publicKeyFiles: [there] },
}

test('-check-config starts nothing and names the file, wherever the path came from', async () => {
  // Shows D3.flag.check-config, D3.flag.config, D3.load.path.flag, D3.load.path.env.
  const file = configFile('good.json', least)
  const ok = { code: 0, out: `config OK: ${file}\n`, err: '' }
  assert.deepEqual(await run(['-check-config', '-config', file]), ok)
  assert.deepEqual(await run(['--check-config'], { PLAT_GATEWAY_CONFIG: file }), ok)
})

test('-check-config names prices that no call can have', async () => {
  const rates = { input: '1', output: '1' }
  const keys = [
    'opnai/m',
    'llm/smal#openai/m',
    'https://us.example#openai/m',
    'llm/small#https://eu.example#openai/m',
    'openai/*',
  ]
  const models = Object.fromEntries(keys.map((key) => [key, rates]))
  const pricingFile = configFile('prices.json', { version: 1, currency: 'USD', id: 'p', models })
  const own = { ...least, pricingFile, models: { small: { upstream: 'https://eu.example/v1' } } }
  const file = configFile('priced.json', own)
  const { code, out, err } = await run(['-check-config', '-config', file])
  assert.deepEqual([code, out], [0, `config OK: ${file}\n`])
  assert.deepEqual(err.trimEnd().split('\n'), [
    `warning: pricingFile: ${pricingFile}: models[opnai/m]: no provider is named opnai; did you mean openai?`,
    `warning: pricingFile: ${pricingFile}: models[llm/smal#openai/m]: no model route is named smal; did you mean small?`,
    `warning: pricingFile: ${pricingFile}: models[https://us.example#openai/m]: no endpoint has the upstream https://us.example`,
  ])
  const broken = configFile('broken.json', { version: 1, currency: 'USD', id: 'p', models: { gpt: rates } })
  const refused = await run(['-check-config', '-config', configFile('refused.json', { ...own, pricingFile: broken })])
  assert.match(refused.err, /^warning: pricingFile: \S+broken\.json: models\[gpt\]: must read .+\n$/)
})

test('every mistake of a file is printed together, and nothing starts', async () => {
  // Shows D3.load.exit1, D3.load.allErrorsTogether, D3.load.unknownKeys, D3.error.unknownKey.
  const file = configFile('bad.json', { maxBodyBytes: 0, auditFailurePolicy: 'maybe', lisen: ':1', ...least })
  const { code, out, err } = await run(['-config', file])
  assert.deepEqual([code, out], [1, ''])
  assert.deepEqual(err.trimEnd().split('\n'), [
    'maxBodyBytes: must be at least 1, got 0',
    'auditFailurePolicy: must be one of open, closed, got "maybe"',
    'lisen: unknown key; did you mean listen?',
  ])
})

test('-version prints one line, and an unknown flag is a mistake of usage', async () => {
  // Shows D3.flag.version.
  const version = await run(['-version'])
  assert.equal(version.code, 0)
  assert.match(version.out, /^plat-gateway \d+\.\d+\.\d+\S* \(commit \S+, built \S+, node26\S*, \S+\/\S+\)\n$/)
  const { code, err } = await run(['-frobnicate'])
  assert.equal(code, 2)
  assert.match(err, /-config/)
})

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { tempFolder } from '@plat/testkit/local'
import { judgeConfig, validateConfigFile } from './validate.ts'

const folder = tempFolder()

function write(name: string, content: string): string {
  const file = path.join(folder, name)
  writeFileSync(file, content)
  return file
}

const there = write('there.pem', '')
const valid = {
  policyFile: there,
  auditPath: path.join(folder, 'audit.jsonl'),
  upstreams: { notes: 'http://127.0.0.1:8091/mcp' },
  identity: { publicKeyFiles: [there] },
}

async function validate(content: object, strict = false): Promise<{ code: number; lines: string[] }> {
  const file = write('gateway.json', JSON.stringify(content))
  const lines: string[] = []
  const code = await validateConfigFile({
    path: file,
    strict,
    write: (line) => lines.push(line.replaceAll(folder, '.')),
  })
  return { code, lines }
}

test('for a valid file it prints config OK and exits with 0', async () => {
  for (const strict of [false, true]) {
    assert.deepEqual(await validate(valid, strict), { code: 0, lines: ['config OK: ./gateway.json'] })
  }
})

test('unknown keys and missing files are warnings, and errors with --strict', async () => {
  // Shows D3.load.validator.warnings, D3.load.validator.strict, D3.load.validator.exitCodes.
  const doubtful = { ...valid, frobnicate: 1, identity: { publicKeyFiles: [path.join(folder, 'none.pem')] } }
  assert.deepEqual(await validate(doubtful), {
    code: 0,
    lines: [
      'warning: identity.publicKeyFiles[0]: no readable file "./none.pem"',
      'warning: frobnicate: unknown key',
      'config OK: ./gateway.json',
    ],
  })
  assert.deepEqual(await validate(doubtful, true), {
    code: 3,
    lines: ['identity.publicKeyFiles[0]: no readable file "./none.pem"', 'frobnicate: unknown key'],
  })
})

test('a policy file that is not rendered yet is a warning, and an error with --strict', async () => {
  const early = { ...valid, policyFile: path.join(folder, 'later.json') }
  assert.equal((await validate(early)).code, 0)
  assert.equal((await validate(early, true)).code, 3)
})

test('a misspelt required key leaves the key missing, which is an error even without --strict', async () => {
  const { auditPath, ...rest } = valid
  assert.deepEqual(await validate({ ...rest, auditPat: auditPath }), {
    code: 3,
    lines: ['warning: auditPat: unknown key; did you mean auditPath?', 'auditPath: is required'],
  })
})

test('wrong values and broken rules are errors either way', async () => {
  const wrong = { ...valid, maxBodyBytes: 'x', adminListen: ':8080' }
  assert.deepEqual(await validate(wrong), {
    code: 3,
    lines: ['maxBodyBytes: must be an integer, got "x"', 'adminListen: must differ from listen, both are :8080'],
  })
})

test('a file that cannot be read answers 3', async () => {
  const lines: string[] = []
  const missing = path.join(folder, 'none.json')
  assert.equal(await validateConfigFile({ path: missing, strict: false, write: (line) => lines.push(line) }), 3)
  assert.match(lines.join(), /^cannot read .*none\.json: no such file/)
})

const CASES = path.join(import.meta.dirname, '../../../services/gateway/fixtures/config')
const WORDS = path.join(import.meta.dirname, 'fixtures/validate.txt')

/** Result of the validator for each configuration of the gateway's tests. Only files below /there exist. */
function everyVerdict(): string {
  const exists = (file: string) => file.startsWith('/there/')
  const verdicts = readdirSync(CASES)
    .sort()
    .map((name) => {
      const [text = ''] = readFileSync(path.join(CASES, name), 'utf8').split('\n----\n')
      const problems = judgeConfig(text, false, exists)
      const verdict = problems.some(({ severity }) => severity === 'error') ? 'exit 3' : 'exit 0'
      return [`== ${name}: ${verdict}`, ...problems.map(formatProblem), ''].join('\n')
    })
  return verdicts.join('')
}

test('each configuration of the gateway has its exact words here as well', () => {
  assert.equal(everyVerdict(), readFileSync(WORDS, 'utf8'))
})

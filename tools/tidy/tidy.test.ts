import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dialect } from './rules/dialect.ts'
import { machineWords } from './rules/words.ts'
import { machineOwn } from './run.ts'
import { readSource } from './source.ts'
import { formatFinding, tidyPage, tidySource, tidySources } from './tidy.ts'

/** The rules that a source breaks, each as `rule:line`. */
function broken(path: string, text: string): string[] {
  return tidySource(path, text).map(({ rule, line }) => `${rule}:${line}`)
}

function brokenTogether(files: Record<string, string>): string[] {
  return tidySources(Object.entries(files).map(([path, text]) => readSource(path, text))).map(
    ({ rule, path }) => `${rule} ${path}`,
  )
}

const FILE = 'packages/core/x.ts'

test('a file of 400 lines is fine, one more is found, and a table may be longer', () => {
  assert.deepEqual(broken(FILE, 'a()\n'.repeat(400)), [])
  assert.deepEqual(broken(FILE, 'a()\n'.repeat(401)), ['file-lines:401'])
  assert.deepEqual(broken(FILE, `/** Rows. @table */\n${'a()\n'.repeat(500)}`), [])
})

test('a function of 60 lines is fine and one more is found, whatever kind of function it is', () => {
  const body = (lines: number) => `{\n${'a()\n'.repeat(lines - 2)}}`
  assert.deepEqual(broken(FILE, `function f() ${body(60)}`), [])
  for (const head of ['function f() ', 'const f = () => ', 'const f = async function () ', 'class C { m() ']) {
    assert.deepEqual(
      broken(FILE, `\n${head}${body(61)}${head.startsWith('class') ? '}' : ''}`),
      ['function-lines:2'],
      head,
    )
  }
})

test('a group of tests may be longer than a function', () => {
  const body = `{\n${'a()\n'.repeat(80)}}`
  assert.deepEqual(broken(FILE, `describe('x', () => ${body})`), [])
  assert.deepEqual(broken(FILE, `test('x', () => ${body})`), ['function-lines:1'])
})

test('nine of ten functions stay under 35 lines', () => {
  const long = `function f() {\n${'a()\n'.repeat(40)}}\n`
  assert.deepEqual(brokenTogether({ [FILE]: long.repeat(2) + 'function g() {}\n'.repeat(8) }), ['function-lines .'])
  assert.deepEqual(brokenTogether({ [FILE]: long + 'function g() {}\n'.repeat(9) }), [])
})

test('a fifth parameter is found', () => {
  assert.deepEqual(broken(FILE, 'const f = (a, b, c, d) => 1'), [])
  assert.deepEqual(broken(FILE, 'class C { m(a, b, c, d, e) {} }'), ['parameters:1'])
})

test('every comment that disables the checker is found, in tests too', () => {
  assert.deepEqual(broken(FILE, 'let a: any\n'), ['any:1'])
  assert.deepEqual(broken('packages/core/x.test.ts', 'a\nb!.c'), ['non-null:2'])
  assert.deepEqual(broken(FILE, '// @ts-ignore\na()'), ['ts-ignore:1'])
  assert.deepEqual(broken(FILE, 'const a = b as C'), ['as:1'])
  assert.deepEqual(broken(FILE, 'const a = [1] as const'), [])
  assert.deepEqual(broken('services/gateway/call/snapshot.ts', 'const a = b as C'), [])
})

test('reviewed files may say `as`, but not often', () => {
  const decoder = 'services/gateway/call/snapshot.ts'
  assert.deepEqual(brokenTogether({ [decoder]: `a as B\n${'\n'.repeat(300)}` }), [])
  assert.deepEqual(brokenTogether({ [decoder]: `a as B\na as C\n${'\n'.repeat(300)}` }), ['as .'])
})

test('an error class whose name does not end in Error is found, where it is declared and where it is thrown', () => {
  assert.deepEqual(broken(FILE, 'class Lost extends Error {}'), ['error-name:1'])
  assert.deepEqual(broken(FILE, 'class Gone extends LostError {}'), ['error-name:1'])
  assert.deepEqual(broken(FILE, 'class LostError extends Error {}\nthrow new LostError()'), [])
  assert.deepEqual(broken(FILE, 'throw new Lost()'), ['error-name:1'])
  assert.deepEqual(broken(FILE, 'throw error'), [])
})

test('a default export is found', () => {
  assert.deepEqual(broken(FILE, 'export default function f() {}'), ['default-export:1'])
})

test('an index file is a face of a package or feature and holds no code', () => {
  assert.deepEqual(broken('packages/core/index.ts', "export { a } from './a.ts'\nexport type { B } from './b.ts'"), [])
  assert.deepEqual(broken('packages/core/json/index.ts', "export { a } from './a.ts'"), ['index:1'])
  assert.deepEqual(broken('packages/core/index.ts', "export { a } from './a.ts'\nexport const b = 1"), ['index:2'])
  assert.deepEqual(broken('services/gateway/decide/policy/index.ts', 'export const a = 1'), [])
  assert.deepEqual(broken('services/gateway/decide/policy/native/index.ts', 'export const a = 1'), ['index:1'])
})

test('imports run from compositions over services to packages, never back', () => {
  const wrong: [string, string][] = [
    ['packages/core/x.ts', '@plat/gateway'],
    ['packages/core/x.ts', '../http/listen.ts'],
    ['packages/core/x.ts', '../../services/gateway/main.ts'],
    ['test/crash/x.ts', '../../packages/core/clock.ts'],
    ['services/gateway/x.ts', '@plat/identity'],
    ['services/gateway/x.ts', '@plat/cli'],
    ['services/gateway/decide/policy/x.ts', '../budgets/index.ts'],
    ['services/gateway/decide/policy/x.ts', '../../targets/servers/index.ts'],
    ['services/gateway/authn/identity.ts', '../decide/policy/index.ts'],
    ['services/gateway/decide/policy/x.ts', '../../pipeline/runner.ts'],
    ['services/gateway/planes/mcp/x.ts', '../../decide/policy/index.ts'],
    ['services/gateway/pipeline/x.ts', '../planes/mcp/plane.ts'],
    ['services/gateway/call/x.ts', '../pipeline/stage.ts'.replace('stage', 'matrix')],
  ]
  for (const [file, from] of wrong) {
    assert.deepEqual(broken(file, `import { a } from '${from}'`), ['import:1'], `${file} ${from}`)
    assert.deepEqual(broken(file, `\nconst a = await import('${from}')`), ['import:2'], `${file} ${from}`)
  }
})

test('the imports of the house are allowed', () => {
  const fine: [string, string][] = [
    ['packages/http/x.ts', '@plat/core'],
    ['packages/core/json/x.ts', '../clock.ts'],
    ['services/gateway/decide/policy/x.ts', '../../pipeline/stage.ts'],
    ['services/gateway/decide/policy/x.ts', '../../call/index.ts'],
    ['services/gateway/decide/policy/x.ts', '../../metrics.ts'],
    ['services/gateway/decide/policy/a/x.ts', '../b/y.ts'],
    ['services/gateway/planes/mcp/x.ts', '../../pipeline/plane.ts'],
    ['services/gateway/compose.ts', './decide/policy/index.ts'],
    ['services/gateway/bin/x.ts', '../main.ts'],
    ['apps/cli/x.ts', '@plat/gateway'],
    ['services/gateway/x.ts', 'fastify'],
    ['test/crash/x.ts', '../../bench/harness/proc.ts'],
  ]
  for (const [file, from] of fine) assert.deepEqual(broken(file, `import { a } from '${from}'`), [], `${file} ${from}`)
})

test('a second way out of a service is found', () => {
  const ways = [
    "import { Pool } from 'undici'",
    "import * as net from 'node:net'",
    "import { connect } from 'node:tls'",
    "import { createServer, request } from 'node:https'",
    "import http2 from 'node:http2'",
    "await fetch('http://x.example')",
    "globalThis.fetch('http://x.example')",
  ]
  for (const text of ways) {
    assert.deepEqual(broken('services/gateway/x.ts', text), ['way-out:1'], text)
    for (const file of [
      'packages/http/dial/x.ts',
      'services/gateway/x.test.ts',
      'apps/cli/x.ts',
      'packages/testkit/x.ts',
    ])
      assert.deepEqual(broken(file, text), [], file)
  }
  const fine = [
    "import type { Pool } from 'undici'",
    "import { type Socket, isIP } from 'node:net'",
    "import { createServer } from 'node:http'",
    'this.fetch(1)',
  ]
  for (const text of fine) assert.deepEqual(broken('services/gateway/x.ts', text), [], text)
})

test('a circle of packages is found at each import that closes it', () => {
  const files = {
    'packages/a/x.ts': "import '@plat/b'",
    'packages/b/x.ts': "import '@plat/c/deep'",
    'packages/c/x.ts': "import '@plat/a'",
    'packages/d/x.ts': "import '@plat/a'",
  }
  const circle = ['packages/a/x.ts', 'packages/b/x.ts', 'packages/c/x.ts'].map((file) => `package-circle ${file}`)
  assert.deepEqual(brokenTogether(files), circle)
  assert.deepEqual(brokenTogether({ ...files, 'packages/c/x.ts': "import '@plat/core'" }), [])
})

test('files that import one another are found, type imports included', () => {
  const files = {
    'services/gateway/call/a.ts': "import type { B } from './deep/b.ts'",
    'services/gateway/call/deep/b.ts': "export { c } from './c.ts'",
    'services/gateway/call/deep/c.ts': "const a = await import('../a.ts')",
    'services/gateway/call/user.ts': "import './a.ts'",
  }
  assert.deepEqual(brokenTogether(files), ['import-cycle services/gateway/call/a.ts'])
  assert.deepEqual(brokenTogether({ ...files, 'services/gateway/call/deep/c.ts': "import { d } from './d.ts'" }), [])
  assert.deepEqual(brokenTogether({ [FILE]: "import type { A } from './x.ts'" }), [`import-cycle ${FILE}`])
  const byName = { 'packages/core/index.ts': "export { x } from './x.ts'", [FILE]: "import { y } from '@plat/core'" }
  assert.deepEqual(brokenTogether(byName), ['import-cycle packages/core/index.ts'])
})

test('a file that imports more than 20 modules is found, outside of the composition root', () => {
  const imports = (count: number) =>
    Array.from({ length: count }, (_, index) => `import { a${index} } from './${index}.ts'\n`).join('')
  assert.deepEqual(broken(FILE, imports(20)), [])
  assert.deepEqual(broken(FILE, imports(21)), ['import-count:1'])
  assert.deepEqual(broken('services/gateway/compose.ts', imports(21)), [])
})

test('raw time and randomness are found in product code and allowed where tests and tools own them', () => {
  const raw = [
    'Date.now()',
    'new Date()',
    'setTimeout(f, 1)',
    'setInterval(f, 1)',
    'Math.random()',
    'crypto.randomUUID()',
  ]
  for (const call of [...raw, 'randomBytes(8)', 'performance.now()', 'globalThis.setTimeout(f, 1)']) {
    assert.deepEqual(broken('packages/http/x.ts', call), ['raw-time:1'], call)
    for (const file of ['packages/http/x.test.ts', 'packages/core/clock.ts', 'tools/x.ts', 'packages/a/testing/x.ts']) {
      assert.deepEqual(broken(file, call), [])
    }
  }
  assert.deepEqual(broken('packages/http/x.ts', 'new Date(ms); clock.now(); Date.parse(a)'), [])
})

test('a series is named in its table or where the registry looks it up', () => {
  assert.deepEqual(broken(FILE, "const a = 'plat_gateway_policies_loaded'"), ['metric-name:1'])
  assert.deepEqual(broken(FILE, "registry.gauge('plat_gateway_policies_loaded').set(1)"), [])
  assert.deepEqual(broken('services/gateway/decide/policy/metrics.ts', "const a = 'plat_gateway_policies_loaded'"), [])
  assert.deepEqual(broken(FILE, "const claims = ['plat_ns', 'plat_session', 'plat_parent_session']"), [])
})

test('notes of unfinished work and tests that do not run are found', () => {
  for (const note of ['// TO' + 'DO later', '/* FIX' + 'ME */']) assert.deepEqual(broken(FILE, note), ['undone:1'])
  assert.deepEqual(broken('packages/core/x.test.ts', "test.skip('a', () => {})"), ['skipped-test:1'])
  assert.deepEqual(broken('packages/core/x.test.ts', "test('a', () => {})"), [])
})

test('eviction by the head of a Map is found', () => {
  for (const text of ['m.keys().next()', 'const a = this.#m.entries().next().value', 'const [oldest] = this.#m.keys()'])
    assert.deepEqual(broken(FILE, text), ['first-of-map:1'], text)
  for (const text of ['const [first, ...others] = m.values()', 'iterator.next()', 'const [first] = await m.values(a)'])
    assert.deepEqual(broken(FILE, text), [], text)
})

test('an expression that is slower than linear is found, wherever it is written', () => {
  const slow = [
    'a.replace(/0+$/, b)',
    '/^(?:a+)+b/',
    "new RegExp('\\\\s*=?\\\\s*$')",
    "const PART = '0+'; new RegExp(`\x24{PART}$`)",
    "const schema = Type.String({ pattern: '(?:a|a)*$' })",
    "const NAME_PATTERN = '(?:a|a)*$'",
  ]
  for (const text of slow) assert.deepEqual(broken(FILE, text), ['regex:1'], text)
  for (const text of ['/^0+$/', '/,[^,]*/', 'const N = "a+"; new RegExp(`^\x24{N}$`)', '/(?<=0)0$/'])
    assert.deepEqual(broken(FILE, text), [], text)
  assert.deepEqual(broken('test/x.ts', '/0+$/'), [])
  assert.deepEqual(broken(FILE, 'new RegExp(pattern)'), ['regex:1'])
  assert.deepEqual(broken('packages/config/check.ts', 'new RegExp(pattern)'), [])
})

test('a check for a promise is found outside of its helper, tests excepted', () => {
  const check = 'const a = b instanceof Promise ? await b : b'
  assert.deepEqual(broken(FILE, check), ['promise-check:1'])
  for (const file of ['packages/core/when-ready.ts', 'packages/core/x.test.ts', 'test/fuzz/x.ts'])
    assert.deepEqual(broken(file, check), [], file)
})

test('a generator that is called but never run is found', () => {
  const steps = 'function* steps() {}\n'
  const lost = [
    `${steps}function* all() { steps() }`,
    `${steps}async function all() { await steps() }`,
    `${steps}function* all() { yield steps() }`,
    'class C { *#steps() {}\n *all() { this.#steps() } }',
    'class C { steps(): Steps<null> { return run() }\n all() { void this.steps() } }',
  ]
  for (const text of lost) assert.deepEqual(brokenTogether({ [FILE]: text }), [`lost-generator ${FILE}`], text)
  assert.deepEqual(brokenTogether({ 'a/x.ts': `export ${steps}`, 'a/y.ts': 'steps()' }), ['lost-generator a/y.ts'])
  const run = [
    `${steps}function* all() { yield* steps() }`,
    `${steps}for (const one of steps()) a(one)`,
    `${steps}const a = steps()`,
    'class C { *#steps() {} }\nclass D { #steps() {}\n all() { this.#steps() } }',
  ]
  for (const text of run) assert.deepEqual(brokenTogether({ [FILE]: text }), [], text)
  const list = 'class C { *push() {} }\n[].push(1)'
  assert.deepEqual(brokenTogether({ [FILE]: list }), [])
  const own = 'function steps() {}\nsteps()'
  assert.deepEqual(brokenTogether({ 'a/x.ts': `export ${steps}`, 'a/y.ts': own }), [])
})

test('a path of six folders is found', () => {
  assert.deepEqual(brokenTogether({ 'a/b/c/d/e/x.ts': '' }), [])
  assert.deepEqual(brokenTogether({ 'a/b/c/d/e/f/x.ts': '' }), ['depth a/b/c/d/e/f/x.ts'])
})

test('paths and hosts of one machine are found in any text', () => {
  const lines = [
    'fine',
    `see /${'work'}/main/x`,
    `https://npm.${'artifactory'}.example/x`,
    `/${'home'}/ann/plat`,
    '/var/lib/plat',
  ]
  const found = machineWords('README.md', `${lines.join('\n')}\nhost.internal.example\n`, ['host.internal.example'])
  assert.deepEqual(
    found.map(({ line }) => line),
    [2, 3, 4, 6],
  )
})

test('the registry that this machine installs from is a word of the machine', () => {
  assert.ok(
    machineOwn('/opt/plat', { npm_config_registry: 'https://npm.corp.example/r/' }).includes('npm.corp.example'),
  )
})

test('a finding is one line that says where, which rule, and how to mend it', () => {
  const [finding] = tidySource(FILE, 'let a: any')
  assert.equal(finding && formatFinding(finding), 'packages/core/x.ts:1 any: any: say unknown and narrow it')
})

test('words that readers have to translate are found in comments, messages and names of tests', () => {
  const words = (text: string) => dialect(readSource(FILE, text)).map(({ line }) => line)
  // Written in pieces, so that this file does not find itself.
  const [notified, requests, noClient] = [
    ['to', 'ld'],
    ['as', 'ks'],
    ['no', 'body'],
  ].map((parts) => parts.join(''))
  assert.deepEqual(words(`// The caller is ${notified}.`), [1])
  assert.deepEqual(words(`\nconst a = '${noClient} may'`), [2])
  assert.deepEqual(words(`test('the server ${requests} the client', () => {})`), [1])
  assert.deepEqual(words(`const a = \`\${b} was ${notified}\``), [1])
  assert.deepEqual(words(`/** ${'What'} it is. */\nconst ${notified} = 1`), [1])
  assert.deepEqual(words(`// The rule ${requests} a person to approve.`), [])
  assert.deepEqual(
    tidyPage('docs/a.md', `# A\n\nIt is ${notified}.\n\`\`\`\n${notified}\n\`\`\`\n`).map(({ line }) => line),
    [3],
  )
  const python = `def test_the_gateway_is_${['to', 'ld'].join('')}() -> None: ...\n# ${notified}\nstood_for = 1\n`
  assert.deepEqual(
    tidyPage('sdk/python/a.py', python).map(({ line }) => line),
    [1, 2],
  )
  assert.deepEqual(tidyPage('examples/a.py', python), [])
  assert.deepEqual(tidyPage('docs/reference/a.md', `It is ${notified}.`), [])
})

test('names that do not say what a value is are found where they are declared', () => {
  const declared = (name: string) => [
    `const ${name} = 1`,
    `let { a: ${name} } = b`,
    `const [${name} = 1, ...c] = b`,
    `function ${name}() {}`,
    `function f({ a, ...${name} }) {}`,
    `const f = (${name}, b) => b`,
    `class C { #${name} = 1 }`,
    `class C { #${name}() {} }`,
    `class C { constructor(${name}) {} }`,
  ]
  for (const text of declared('kept')) assert.deepEqual(broken(FILE, text), ['name:1'], text)
  for (const text of declared('taken')) assert.deepEqual(broken(FILE, text), [], text)
  for (const text of ['a.kept', 'const a = { said: 1, kept() {} }', 'interface A { shown: string }'])
    assert.deepEqual(broken(FILE, text), [], text)
})

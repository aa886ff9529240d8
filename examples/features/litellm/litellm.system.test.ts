import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { startUp } from '@plat/cli'
import { npmPackages } from '@plat/testkit/processes/npm'
import { pythonWith } from '@plat/testkit/processes/python'
import { startProviders } from './providers.ts'

const execute = promisify(execFile)
const here = (name: string) => path.join(import.meta.dirname, name)
const COMMAND = path.resolve(import.meta.dirname, '../../../apps/cli/bin/plat.mjs')
const OPENAI = 'openai@7.57.0'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())

const dir = mkdtempSync(path.join(tmpdir(), 'plat-'))
for (const file of ['config.yaml', 'call.mjs', 'call.py']) cpSync(here(file), path.join(dir, file))
const providers = await startProviders(stack)

async function plat(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  const options = { cwd: dir, env: { PATH: process.env.PATH, HOME: dir, LC_ALL: 'C.UTF-8', ...env } }
  return (await execute(process.execPath, [COMMAND, ...args], options)).stdout
}

/** Lines of config.yaml that the import reports; the others are converted. */
const NOT_CONVERTED = [
  /:31: litellm_settings\.drop_params: not converted: /,
  /:36: general_settings\.master_key: not converted: /,
]

const EXPECTED = [
  'gpt-4o: Hello from OpenAI | Hello from OpenAI',
  'fast: Hello from OpenAI | Hello from OpenAI',
  'claude-sonnet: Hello from Anthropic | Hello from Anthropic',
  'gemini-flash: Hello from Gemini | Hello from Gemini',
  'azure-gpt: Hello from Azure | Hello from Azure',
]
const MODELS = EXPECTED.map((line) => line.slice(0, line.indexOf(':')))

const imported = await plat(['import', 'litellm', 'config.yaml'], providers).then(
  () => assert.fail('something is not converted'),
  (error: { code: number; stdout: string; stderr: string }) => error,
)
const up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
stack.defer(() => up.stop())

const npm = await npmPackages([OPENAI])
if (!('missing' in npm)) symlinkSync(npm.folder, path.join(dir, 'node_modules'))
const python = await pythonWith(here('requirements.txt'))

/** Programs that use the package of each registry. */
const CLIENTS: readonly (readonly [name: string, command: readonly string[], missing: string | false])[] = [
  ['npm', [process.execPath, 'call.mjs'], 'missing' in npm ? npm.missing : false],
  ['PyPI', 'missing' in python ? [] : [python.path, 'call.py'], 'missing' in python ? python.missing : false],
]

test('the import lists what plat does otherwise, with the line, and plat up has nothing to object', async () => {
  assert.equal(imported.code, 3)
  const lines = `${imported.stdout}${imported.stderr}`.split('\n').filter((line) => line.includes('not converted'))
  assert.equal(lines.length, NOT_CONVERTED.length, lines.join('\n'))
  for (const [at, expected] of NOT_CONVERTED.entries()) assert.match(lines[at] ?? '', expected)
  assert.deepEqual(await up.problems(), { refused: [], warnings: [] })
})

for (const [name, command, missing] of CLIENTS)
  describe(`openai of ${name}`, { skip: missing }, () => {
    test('under plat run nothing of the program changes, whole and streamed', async () => {
      const env = { OPENAI_BASE_URL: 'http://127.0.0.1:4000', OPENAI_API_KEY: 'sk-litellm' }
      const printed = await plat(['run', 'assistant', '--', ...command, ...MODELS], env)
      assert.deepEqual(printed.trimEnd().split('\n'), EXPECTED)
    })

    test('with another base URL, and a token in place of the key, every model responds, whole and streamed', async () => {
      const token = (await plat(['token', 'mint', 'assistant', '-o', 'token'])).trim()
      const env = { OPENAI_BASE_URL: `${up.env.PLAT_GATEWAY_URL}/llm/v1`, OPENAI_API_KEY: token, HOME: dir }
      const [program = '', ...args] = command
      const { stdout } = await execute(program, [...args, ...MODELS], { cwd: dir, env })
      assert.deepEqual(stdout.trimEnd().split('\n'), EXPECTED)
    })
  })

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeEach, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { printed } from '../testing/commands.ts'
import { validateResources } from '../validate/validate.ts'
import { type InitOptions, init } from './init.ts'

let dir = ''
let home = ''
beforeEach(() => {
  dir = tempFolder()
  home = tempFolder()
})

async function write(path: string, content: object): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, JSON.stringify(content))
}

/** Answers questions in order; the questions are collected. */
async function initialised(
  options: Partial<InitOptions>,
  { answers = [], env = {} }: { readonly answers?: readonly string[]; readonly env?: NodeJS.ProcessEnv } = {},
) {
  const questions: string[] = []
  const prompt = async (question: string, usual: string) => {
    questions.push(`${question} [${usual}]`)
    return answers[questions.length - 1] || usual
  }
  const places = { dir, home, platform: 'linux' as const, env }
  const { code, text } = await printed((output) => init({ dir, ...options }, output, { prompt, places }))
  return { code, lines: text.split('\n'), questions }
}

const text = (path: string) => readFile(join(dir, 'resources', path), 'utf8')

test('plat init creates the directory that it is given', async () => {
  dir = join(dir, 'new/one')
  await initialised({ yes: true, servers: 'none' })
  assert.match(await text('agents/default/assistant.yaml'), /kind: Agent/)
})

test('plat init without servers and without a model writes nothing, and says where a server is looked for', async () => {
  await assert.rejects(initialised({ yes: true }), {
    message:
      /^nothing to govern: no MCP server in \.mcp\.json, .*; write a server into \.mcp\.json, choose a -provider, or/,
  })
  assert.equal(existsSync(join(dir, 'resources')), false)
})

test('the last lines are the next commands, as they are started here', async () => {
  const { lines } = await initialised({ provider: 'ollama', yes: true }, { env: { npm_command: 'exec' } })
  assert.match(lines.at(-2) ?? '', /^next: npx --no plat up \S+$/)
  assert.match(
    lines.at(-1) ?? '',
    /^then, in a second terminal: npx --no plat run -dir \S+ assistant -- <your program>$/,
  )
})

test('plat init finds servers of every client, has three questions, and what it writes is valid', async () => {
  await write(join(dir, '.mcp.json'), { mcpServers: { notes: { url: 'http://127.0.0.1:1/mcp' } } })
  await write(join(home, '.config/Claude/claude_desktop_config.json'), {
    mcpServers: { notes: { url: 'http://127.0.0.1:9/other' }, mail: { url: 'http://127.0.0.1:2/mcp' } },
  })
  await write(join(home, '.config/Code/User/mcp.json'), { servers: { search: { url: 'http://127.0.0.1:3/mcp' } } })
  await write(join(home, '.cursor/mcp.json'), { mcpServers: { broken: 3 } })
  const { lines, questions } = await initialised({}, { answers: ['helper', 'notes, search', 'anthropic'] })
  assert.deepEqual(questions, [
    'Name of the agent [assistant]',
    'Servers to govern (all, none, or names with commas) [all]',
    'Provider of its model (openai, anthropic, gemini, ollama, none) [none]',
  ])
  assert.ok(lines.includes(`  mail  (Claude Desktop, ${home}/.config/Claude/claude_desktop_config.json)`))
  assert.match(await text('agents/default/helper.yaml'), /adapter: anthropic/)
  assert.match(await text('mcpservers/default/notes.yaml'), /127\.0\.0\.1:1/, 'the file of the directory comes first')
  assert.match(await text('mcpservers/default/search.yaml'), /127\.0\.0\.1:3/)
  assert.equal(existsSync(join(dir, 'resources/mcpservers/default/mail.yaml')), false)
  assert.ok(lines.includes('next: write the key of anthropic into .plat/secrets/default/anthropic/api-key'))
  assert.match(lines.at(-2) ?? '', /^next: plat up /)
  assert.ok(existsSync(join(dir, '.plat/schemas/agent.schema.json')))
  const checked = await printed((output) => validateResources({ dir }, output))
  assert.equal(checked.code, 0, checked.text)
})

test('options answer the questions, and -yes the others', async () => {
  const env = { OPENAI_API_KEY: 'sk-environment' }
  assert.deepEqual((await initialised({ agent: 'a', servers: 'none', provider: 'none' })).questions, [])
  assert.deepEqual((await initialised({ agent: 'b', yes: true }, { env })).questions, [])
  assert.match(await text('agents/default/b.yaml'), /https:\/\/api\.openai\.com\/v1/)
  assert.doesNotMatch(await text('agents/default/b.yaml'), /sk-environment/)
  assert.equal(await readFile(join(dir, '.plat/secrets/default/openai/api-key'), 'utf8'), 'sk-environment')
  assert.match(await readFile(join(dir, '.plat/.gitignore'), 'utf8'), /^\*$/m)
})

test('a second plat init changes nothing', async () => {
  await initialised({ yes: true, servers: 'none' })
  const before = await text('agents/default/assistant.yaml')
  const { lines } = await initialised({ yes: true, provider: 'ollama' })
  assert.equal(await text('agents/default/assistant.yaml'), before)
  assert.deepEqual(
    lines.filter((line) => line.startsWith('wrote')),
    [],
  )
})

test('a wrong answer is one line with a suggestion, and writes nothing', async () => {
  await write(join(dir, '.mcp.json'), { mcpServers: { notes: { url: 'http://127.0.0.1:1/mcp' } } })
  const refusals = {
    'no server "nots" was found; did you mean notes?': { servers: 'nots' },
    '"opnai" is not a provider that plat init writes; did you mean openai?': { provider: 'opnai' },
    '"A b" cannot be the name of an agent: use lower-case letters, digits and -': { agent: 'A b' },
  }
  for (const [message, options] of Object.entries(refusals))
    await assert.rejects(initialised({ yes: true, ...options }), { message, exitCode: 2 })
  assert.equal(existsSync(join(dir, 'resources')), false)
})

test('a wrong answer on the terminal is refused, and the question repeated', async () => {
  const answers = ['A b', 'helper', 'opnai', 'ollama']
  const { lines, questions } = await initialised({}, { answers })
  assert.equal(questions.length, 4)
  assert.ok(lines.includes('"opnai" is not a provider that plat init writes; did you mean openai?'))
  assert.match(await text('agents/default/helper.yaml'), /11434/)
})

test('a configuration that cannot be read is named, and the others are used', async () => {
  await mkdir(join(dir, '.vscode'))
  await writeFile(join(dir, '.vscode/mcp.json'), '{"servers": ')
  await write(join(dir, '.mcp.json'), { mcpServers: { notes: { url: 'http://127.0.0.1:1/mcp' } } })
  const { lines } = await initialised({ yes: true })
  assert.match(lines[0] ?? '', /\.vscode\/mcp\.json: is not JSON: /)
  assert.ok(existsSync(join(dir, 'resources/mcpservers/default/notes.yaml')))
})

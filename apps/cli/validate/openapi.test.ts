import assert from 'node:assert/strict'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { printed, putResource } from '../testing/commands.ts'
import { validateResources } from './validate.ts'

const responses = { 200: { description: '' } }
const upload = { requestBody: { required: true, content: { 'multipart/form-data': {} } }, responses }
const document = {
  openapi: '3.1.0',
  paths: {
    '/pets': { get: { operationId: 'listPets', responses }, post: { operationId: 'upload', ...upload } },
  },
}

async function problemsOf(openapi: object, files: Readonly<Record<string, string>> = {}) {
  const dir = tempFolder()
  await putResource(dir, 'agents/default/a.yaml', 'Agent', {
    image: 'i',
    tier: 't',
    policyRef: 'p',
    tools: [{ name: 'pets' }],
  })
  const rules = [{ name: 'r', action: 'allow', match: { servers: ['pets'], tools: ['listPet'] } }]
  await putResource(dir, 'toolpolicies/default/p.yaml', 'ToolPolicy', { rules })
  await putResource(dir, 'mcpservers/default/pets.yaml', 'MCPServer', { url: 'http://127.0.0.1:1/v1', openapi })
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text)
  await symlink('/etc/hostname', join(dir, 'link.json'))
  const { text } = await printed((output) => validateResources({ dir }, output))
  return text.split('\n').filter((line) => !line.startsWith('resources OK'))
}

test('a document that cannot be used is named with file, line and fix', async () => {
  // Shows D2.server.openapi.unreadable and D2.server.openapi.source.
  const first = async (openapi: object, text = '') => (await problemsOf(openapi, { 'a.json': text }))[0] ?? ''
  const at = /^mcpservers\/default\/pets\.yaml:\d+: spec\.openapi/
  for (const [openapi, text, why] of [
    [{ file: 'b.json' }, '', 'file: b.json cannot be read'],
    [{ file: '../b.json' }, '', 'file: must be a path below the directory of plat up'],
    [{ file: 'link.json' }, '', 'file: link.json cannot be read'],
    [{ file: 'a.json' }, '{"swagger":"2.0"}', 'file: is Swagger 2.0: convert it to OpenAPI 3'],
    [{ inline: 'openapi: 3.1.0\na: [' }, '', 'inline: is not valid YAML in line 2'],
    [{ configMapRef: { name: 'x', key: 'y' } }, '', 'configMapRef: ConfigMap default/x/y cannot be read'],
    [{ documentURL: 'http://127.0.0.1:1/a' }, '', 'documentURL: cannot be read (refused)'],
    [{ file: 'a.json', inline: 'x' }, '', ': exactly one of file, inline, configMapRef and documentURL'],
    [
      { file: 'a.json', allow: [{ methods: ['GET'] }] },
      '',
      'allow[0]: Required value: operationId, tag or path is required',
    ],
  ] as const) {
    const line = await first(openapi, text)
    assert.match(line, at)
    assert.ok(line.includes(why), line)
  }
})

test('rules and operations that give no tool are warnings, and policies are compared with the tools', async () => {
  const allow = [{ path: '/pets', methods: ['GET', 'POST'] }, { operationId: 'lstPets' }]
  const warnings = await problemsOf({ file: 'a.json', allow }, { 'a.json': JSON.stringify(document) })
  const has = (part: string) =>
    assert.ok(
      warnings.some((line) => line.includes(part)),
      `${part} in ${warnings.join('\n')}`,
    )
  has('spec.openapi.allow[1]: matches no operation of the document')
  has('spec.openapi: POST "/pets" needs a body that is neither JSON nor a form nor plain text: it is not a tool')
  has('did you mean "listPets"?')
})

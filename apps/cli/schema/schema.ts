import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { closest } from '@plat/core'
import { gatewayEditorSchema } from '@plat/gateway/editor-schema'
import { isKind, kinds } from '@plat/resources'
import { editorSchemaOf, editorSchemas } from '@plat/resources/editor-schema'
import { writePrivate } from '../shared/home.ts'
import { CommandError, type Output } from '../shared/output.ts'

const GATEWAY = 'gateway'

/**
 * `plat schema`: the JSON Schema of a kind, by its name, plural or short name, or of gateway.json.
 * @throws CommandError with exit code 2 for another name
 */
export async function printSchema(name: string, output: Output): Promise<number> {
  const schema = schemasByName().get(name.toLowerCase())
  if (schema === undefined) throw new CommandError(unknownName(name), 2)
  output.out(JSON.stringify(schema(), null, 2))
  return 0
}

/** Writes the schemas into a folder, for editors. One that stays the same is not written. */
export async function writeSchemas(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  for (const [name, schema] of schemaFiles()) {
    const path = join(dir, name)
    const text = `${JSON.stringify(schema, null, 2)}\n`
    if ((await readFile(path, 'utf8').catch(() => '')) !== text) await writePrivate(path, text)
  }
}

/** The schemas by the names of their files. */
export function schemaFiles(): ReadonlyMap<string, object> {
  return new Map([...editorSchemas(), [`${GATEWAY}.schema.json`, gatewayEditorSchema()]])
}

function schemasByName(): ReadonlyMap<string, () => object> {
  const names = new Map([GATEWAY, `${GATEWAY}.json`].map((name) => [name, gatewayEditorSchema]))
  for (const kind of Object.keys(kinds).filter(isKind)) {
    const { plural, shortNames } = kinds[kind]
    for (const name of [kind.toLowerCase(), plural, ...shortNames]) names.set(name, () => editorSchemaOf(kind))
  }
  return names
}

function unknownName(name: string): string {
  const known = [...Object.keys(kinds), GATEWAY]
  const meant = closest(name, known)
  return `no schema is named ${JSON.stringify(name)}; ${meant === null ? `name one of ${known.join(', ')}` : `did you mean ${meant}?`}`
}

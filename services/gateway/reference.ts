import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { jsonSchema, markdownReference } from '@plat/config'
import { gatewayBlocks, gatewaySchema } from './config.ts'

/** Where the reference of gateway.json stands; run this file to write it again, a test compares. */
export const REFERENCE_FOLDER = path.resolve(import.meta.dirname, '../../docs/reference')

const INTRODUCTION = `# gateway.json

Written from the gateway's tables by \`node services/gateway/reference.ts\`; do not edit. Editors complete and check the
file with \`gateway.schema.json\` beside this page. \`plat-gateway -check-config\` and \`plat config validate\` report every
problem of a file at once.

`

/** The pages of the reference by file name. */
export function referencePages(): Readonly<Record<string, string>> {
  return {
    'gateway.md': INTRODUCTION + markdownReference(gatewayBlocks, {}),
    'gateway.schema.json': printJson(jsonSchema(gatewaySchema(), 'gateway.json')),
  }
}

/** Widest line of the repository's formatter, which writes a list of plain values in one line where it fits. */
const LINE_WIDTH = 120

/** JSON as the repository's formatter leaves it. */
function printJson(value: object): string {
  const text = JSON.stringify(value, null, 2)
  const short = text.replace(
    /^(.*)\[\n([^[\]{}]*)\n *\](,?)$/gm,
    (all, before: string, items: string, comma: string) => {
      const line = `${before}[${items.trim().replaceAll(/\n */g, ' ')}]${comma}`
      return line.length > LINE_WIDTH ? all : line
    },
  )
  return `${short}\n`
}

if (import.meta.main) {
  mkdirSync(REFERENCE_FOLDER, { recursive: true })
  for (const [name, text] of Object.entries(referencePages())) writeFileSync(path.join(REFERENCE_FOLDER, name), text)
}

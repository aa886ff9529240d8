import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { jsonSchema, markdownReference } from '@plat/config'
import { buildInfo } from '@plat/core'
import { editorSchemas } from '@plat/resources/editor-schema'
import { kindPages } from '@plat/resources/kind-pages'
import { adminReference } from './admin/reference.ts'
import { readAlerts, rulesFile, thresholdsOf } from './chart/alerts.ts'
import { chartFiles } from './chart/files.ts'
import { gatewayBlocks, gatewaySchema } from './config.ts'
import { detectorsReference } from './content/dlp/reference.ts'
import { gatewayEditorSchema } from './editor-schema.ts'
import { openApiDocument } from './openapi/document.ts'
import { poolsReference } from './pools-reference.ts'

/** The root of the repository, below which the written files stand. */
export const REPOSITORY = path.resolve(import.meta.dirname, '../..')

const INTRODUCTION = `# gateway.json

Written from the gateway's tables by \`node services/gateway/reference.ts\`; do not edit. Editors complete and check the
file with \`gateway.schema.json\` beside this page. \`plat-gateway -check-config\` and \`plat config validate\` report every
problem of a file at once.

`

/** Generated files by path from the root. Run this file to update them; a test compares them. */
export function referencePages(): Readonly<Record<string, string>> {
  const alerts = readAlerts(REPOSITORY)
  const { values, schema } = chartFiles(gatewaySchema(), thresholdsOf(alerts))
  return {
    'docs/reference/detectors.md': detectorsReference(),
    'docs/reference/gateway.md': INTRODUCTION + markdownReference(gatewayBlocks),
    'docs/reference/admin-api.md': adminReference(),
    'docs/reference/pools.md': poolsReference(),
    'docs/reference/openapi.json': printJson(openApiDocument(buildInfo('gateway').version)),
    'docs/reference/gateway.schema.json': printJson(jsonSchema(gatewaySchema(), 'gateway.json')),
    ...editorSchemaPages(),
    ...Object.fromEntries([...kindPages()].map(([name, text]) => [`docs/reference/kinds/${name}`, text])),
    'deploy/alerts/plat.rules.yaml': rulesFile(alerts),
    'deploy/chart/values.yaml': values,
    'deploy/chart/values.schema.json': printJson(schema),
  }
}

/** The schemas that `plat schema` prints. */
function editorSchemaPages(): Readonly<Record<string, string>> {
  const schemas = new Map([...editorSchemas(), ['gateway.schema.json', gatewayEditorSchema()]])
  return Object.fromEntries([...schemas].map(([name, one]) => [`docs/reference/schemas/${name}`, printJson(one)]))
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
  for (const [name, text] of Object.entries(referencePages())) {
    mkdirSync(path.dirname(path.join(REPOSITORY, name)), { recursive: true })
    writeFileSync(path.join(REPOSITORY, name), text)
  }
}

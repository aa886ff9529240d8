import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { definitionOf } from '@plat/resources/definitions'
import { parse } from 'yaml'

/** Every CustomResourceDefinition that the tests need: ours, and agent-sandbox's from the folder. */
export function definitions(sandboxFolder: string): readonly object[] {
  return [...(['AgentSession', 'Agent', 'TrustTier'] as const).map(definitionOf), ...sandboxDefinitions(sandboxFolder)]
}

/** Without the webhook that converts between versions: no controller runs here, and all is written in the stored version. */
export function sandboxDefinitions(folder: string): readonly object[] {
  return readdirSync(folder).map((name) => {
    const { apiVersion, kind, metadata, spec } = parse(readFileSync(path.join(folder, name), 'utf8'))
    return { apiVersion, kind, metadata: { name: metadata.name }, spec: { ...spec, conversion: { strategy: 'None' } } }
  })
}

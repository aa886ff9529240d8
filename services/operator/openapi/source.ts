import { isAbsolute, normalize } from 'node:path'
import type { Manifest } from '@plat/resources'

/** `<namespace>/<configMap>/<key>`; null: there is no reference. */
export function documentOf(
  namespace: string,
  ref: { readonly name: string; readonly key: string } | undefined,
): string | null {
  return ref === undefined ? null : `${namespace}/${ref.name}/${ref.key}`
}

/** How a file is named among referenced texts; ConfigMaps have no such names. */
export function fileName(path: string): string {
  return `file:${path}`
}

/** Where the document of a server comes from. */
export interface ApiSource {
  /** The member of `openapi`. */
  readonly field: 'file' | 'inline' | 'configMapRef' | 'documentURL'
  /** Name among referenced texts: that of a ConfigMap, or the path of a file; null: it is in none of them. */
  readonly name: string | null
}

/** Returns where the document of a server with `openapi` comes from. */
export function sourceOf({ metadata, spec: { openapi = {} } }: Manifest<'MCPServer'>): ApiSource {
  const { file, inline, configMapRef } = openapi
  if (file !== undefined) return { field: 'file', name: fileName(file) }
  if (inline !== undefined) return { field: 'inline', name: null }
  const name = documentOf(metadata.namespace, configMapRef)
  return { field: name === null ? 'documentURL' : 'configMapRef', name }
}

/** Returns whether a path leads to a file below the directory to which it is relative. Links are resolved where the file is read. */
export function isBelow(path: string): boolean {
  return !isAbsolute(path) && !path.includes('\0') && !path.includes('\\') && normalize(path).split('/')[0] !== '..'
}

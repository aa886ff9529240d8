import { isAbsolute, join } from 'node:path'
import { isObject } from '@plat/core'
import type { Node } from './node.ts'

/** Returns a configuration in which relative paths of files are below `dir`. Which strings are files is noted in the schema. */
export function withFilesBelow(node: Node, value: unknown, dir: string): unknown {
  if (typeof value === 'string') {
    return node.file === undefined || value === '' || isAbsolute(value) ? value : join(dir, value)
  }
  if (Array.isArray(value)) {
    const { items } = node
    return items === undefined ? value : value.map((item: unknown) => withFilesBelow(items, item, dir))
  }
  if (!isObject(value)) return value
  const entries = Object.entries(value).map(([name, member]) => {
    const child = memberNode(node, name)
    return [name, child === null ? member : withFilesBelow(child, member, dir)]
  })
  return Object.fromEntries(entries)
}

function memberNode({ properties = {}, patternProperties = {} }: Node, name: string): Node | null {
  if (Object.hasOwn(properties, name)) return properties[name] ?? null
  const [pattern] = Object.values(patternProperties)
  return pattern ?? null
}

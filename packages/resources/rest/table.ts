import { isObject } from '@plat/core'
import { type Column, columnsOf } from '../kinds/definitions.ts'
import type { Kind, Resource } from '../kinds/kinds.ts'
import { wireOf } from './rest.ts'

/** Part of an object included in its row: `includeObject`. */
export type IncludeObject = 'None' | 'Metadata' | 'Object'

export interface TableOptions {
  readonly includeObject: IncludeObject
  /** Metadata of the list. */
  readonly metadata: object
  /** Milliseconds since the epoch; ages are computed from it. */
  readonly now: number
}

/** Returns objects as the table printed by `kubectl get` (docs/spec/crds.md, "Columns"). */
export function tableOf(kind: Kind, objects: readonly Resource[], options: TableOptions): object {
  const columns = columnsOf(kind)
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: options.metadata,
    columnDefinitions: [NAME, ...columns.map(definitionOf)],
    rows: objects.map((object) => rowOf(object, columns, options)),
  }
}

const NAME = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name of the object, one of its kind in a namespace.',
  priority: 0,
}

function definitionOf({ name, type, jsonPath }: Column): object {
  return { name, type, format: '', description: `Column of the kind: ${jsonPath}`, priority: 0 }
}

function rowOf(object: Resource, columns: readonly Column[], { includeObject, now }: TableOptions): object {
  const wire = wireOf(object)
  const cells = [object.metadata.name, ...columns.map((column) => cellOf(wire, column, now))]
  if (includeObject === 'None') return { cells }
  if (includeObject === 'Object') return { cells, object: wire }
  const partial = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: wire.metadata }
  return { cells, object: partial }
}

/** A value that does not fit its column is shown as empty. */
function cellOf(object: unknown, { type, jsonPath }: Column, now: number): unknown {
  const value = valueAt(object, jsonPath)
  if (value === undefined || value === null) return null
  if (type === 'date') return typeof value === 'string' ? ageOf(now - Date.parse(value)) : null
  if (type === 'string') return typeof value === 'string' ? value : JSON.stringify(value)
  return typeof value === (type === 'boolean' ? 'boolean' : 'number') ? value : null
}

const STEP = /\.([A-Za-z0-9_-]+)|\[\?\(@\.([A-Za-z]+)=="([^"]*)"\)\]/g

/** The part of JSONPath that the columns use: members, and the list entry whose member has a value. */
function valueAt(object: unknown, jsonPath: string): unknown {
  let at = object
  for (const [, name, key, wanted] of jsonPath.matchAll(STEP)) {
    if (name !== undefined) at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined
    else if (key !== undefined) {
      at = Array.isArray(at) ? at.find((entry) => isObject(entry) && entry[key] === wanted) : undefined
    }
  }
  return at
}

const SECOND_MS = 1000
const MINUTE_S = 60
const HOUR_S = 60 * MINUTE_S
const DAY_S = 24 * HOUR_S
const YEAR_S = 365 * DAY_S

/** Formats an age as kubectl does: with a second unit where one is imprecise. */
export function ageOf(ms: number): string {
  const seconds = Math.floor(ms / SECOND_MS)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 2 * MINUTE_S) return `${seconds}s`
  if (seconds < 10 * MINUTE_S) return joined(seconds, [MINUTE_S, 'm'], [1, 's'])
  if (seconds < 3 * HOUR_S) return `${Math.floor(seconds / MINUTE_S)}m`
  if (seconds < 8 * HOUR_S) return joined(seconds, [HOUR_S, 'h'], [MINUTE_S, 'm'])
  if (seconds < 2 * DAY_S) return `${Math.floor(seconds / HOUR_S)}h`
  if (seconds < 8 * DAY_S) return joined(seconds, [DAY_S, 'd'], [HOUR_S, 'h'])
  if (seconds < 2 * YEAR_S) return `${Math.floor(seconds / DAY_S)}d`
  if (seconds < 8 * YEAR_S) return joined(seconds, [YEAR_S, 'y'], [DAY_S, 'd'])
  return `${Math.floor(seconds / YEAR_S)}y`
}

type Unit = readonly [seconds: number, name: string]

function joined(seconds: number, [large, largeName]: Unit, [small, smallName]: Unit): string {
  const rest = Math.floor((seconds % large) / small)
  const whole = `${Math.floor(seconds / large)}${largeName}`
  return rest === 0 ? whole : `${whole}${rest}${smallName}`
}

import type { Static } from 'typebox'
import type { DlpAction } from '../../call/index.ts'
import type { profileSchema } from './config.ts'
import type { Detector, Row } from './detectors/detector.ts'
import { detectorRows } from './detectors/table.ts'
import { createCustom } from './scan/custom.ts'
import { Scanner } from './scan/scanner.ts'

/** A profile of gateway.json with defaults. */
export type ProfileConfig = Static<typeof profileSchema>

const ORDER = ['off', 'audit', 'redact', 'deny'] as const

/** Settings of a profile for one direction. */
export interface Direction {
  readonly scanner: Scanner
  /** Actions for personal data and secrets. */
  readonly action: Readonly<Record<'personal' | 'secret', DlpAction>>
  readonly onOversize: 'audit' | 'deny'
}

/** A compiled profile. */
export interface Profile {
  readonly name: string
  /** Null if this direction is not scanned. */
  readonly arguments: Direction | null
  readonly response: Direction | null
  readonly maxScanBytes: number
  readonly streamCarryBytes: number
}

export function actionFor({ action }: Direction, { secret }: Pick<Detector, 'secret'>): DlpAction {
  return secret ? action.secret : action.personal
}

/** Compiles a checked profile. */
export function compileProfile(name: string, config: ProfileConfig): Profile {
  const { requestAction, responseAction, maxScanBytes, streamCarryBytes } = config
  const request = directionOf(config, requestAction)
  const isSame = requestAction === responseAction
  return {
    name,
    arguments: request,
    response: isSame ? request : directionOf(config, responseAction),
    maxScanBytes,
    streamCarryBytes,
  }
}

type Configured = (typeof ORDER)[number]

function directionOf(config: ProfileConfig, configured: Configured): Direction | null {
  const forSecrets = stricter(configured, config.onSecret ?? 'off')
  const isWanted = ({ secret }: Pick<Row, 'secret'>) => (secret ? forSecrets : configured) !== 'off'
  if (forSecrets === 'off') return null
  const enforces = [configured, forSecrets].some((action) => action === 'redact' || action === 'deny')
  return {
    scanner: scannerOf(config, isWanted),
    action: { personal: configured === 'off' ? 'audit' : configured, secret: forSecrets },
    onOversize: config.onOversize ?? (enforces ? 'deny' : 'audit'),
  }
}

function stricter(one: Configured, other: Configured): Configured {
  return ORDER[Math.max(ORDER.indexOf(one), ORDER.indexOf(other))] ?? one
}

function scannerOf(config: ProfileConfig, isWanted: (row: Pick<Row, 'secret'>) => boolean): Scanner {
  const { detectors: named, entropyMinLength: minLength, entropyThreshold: threshold } = config
  const isNamed = ({ id, byDefault }: Row) => named?.includes(id) ?? byDefault
  const rows = detectorRows({ minLength, threshold }).filter((row) => isNamed(row) && isWanted(row))
  const customs = config.custom.filter(isWanted).map(({ id, regex, secret }, index) => {
    return createCustom({ ...UNDESCRIBED, id, secret, place: rows.length + index }, regex)
  })
  return new Scanner(
    rows.map((row, place) => ({ ...row, place })),
    customs,
  )
}

const UNDESCRIBED = { byDefault: false, finds: '', validated: '', finder: {} } as const

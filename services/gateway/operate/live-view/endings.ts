/** How a view ended: the close code of its WebSocket (RFC 6455, section 7.4.2) with the reason, at most 123 bytes. @table */
export const endings = {
  closed: { code: 1000, reason: 'the view was closed' },
  sandbox_closed: { code: 4000, reason: 'the sandbox has ended its view' },
  unreachable: { code: 4001, reason: 'the sandbox cannot be reached' },
  not_a_view: { code: 4002, reason: 'the sandbox does not answer with a view that this gateway can show' },
  invalid: { code: 4003, reason: 'the viewer sent a message that is not relayed' },
  idle: { code: 4004, reason: 'nothing has changed for too long' },
  time_limit: { code: 4005, reason: 'the view was open for the longest time allowed' },
  login_ended: { code: 4006, reason: 'your login has ended, or has lost the role' },
  session_ended: { code: 4007, reason: 'the session is revoked or has ended' },
  stopping: { code: 4008, reason: 'the gateway is stopping' },
} as const satisfies Record<string, { readonly code: number; readonly reason: string }>

export type Ending = keyof typeof endings

export const ENDINGS = Object.keys(endings)

/** `watch`: nothing that the viewer does reaches the sandbox. `control`: keys, the pointer and pasted text do. */
export type ViewMode = 'watch' | 'control'

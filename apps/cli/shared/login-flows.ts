/** How a person logs in: with a browser of this machine, or with a code on another device. */
export const LOGIN_FLOWS = ['browser', 'device'] as const
export type LoginFlow = (typeof LOGIN_FLOWS)[number]

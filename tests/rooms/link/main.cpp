// The program of every link test: what matters is that it links.
int main() { return 0; }
